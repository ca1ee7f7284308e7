"""What agents send to the model for the same tasks: bytes of system prompt, tools, results, and the part that a prompt cache can use."""
from __future__ import annotations

import json
import os
import time
from typing import Any

from .agents import Agent, Codex, Opencode, Pi, Refused
from .install import Peer
from .plot import Panel, chart
from .report import number
from .speed import Context
from .tasks import NO_MATCH, Task, call, project, tasks

# An estimate, the same for all agents: no tokenizer is part of the comparison.
BYTES_PER_TOKEN = 4


def compact(agent: Agent) -> None:
    """Asks the agent to compact its context."""
    if isinstance(agent, Pi):
        agent.request({"type": "compact"}, 60)
    elif isinstance(agent, Codex):
        done = agent.child.lines.expect(lambda head, _: b'"turn/completed"' in head[:120])
        agent.request("thread/compact/start", {"threadId": agent.thread})
        done.wait(60)
    elif isinstance(agent, Opencode):
        own = agent.session.encode()
        idle = agent.events.expect(lambda head, _: b'"session.idle"' in head[:120] and own in head)
        agent.request("POST", f"/session/{agent.session}/summarize", {"providerID": "mock", "modelID": "mock"}, 60)
        idle.wait(60)


def plain(value: Any) -> Any:
    """Removes cache marks: they move from request to request and are not part of the prompt."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k != "cache_control"}
    return [plain(x) for x in value] if isinstance(value, list) else value


def parts(text: str, folder: str) -> dict[str, Any]:
    """Splits a request in the order in which a provider reads it: tools, system prompt, conversation. Paths of the agent's folder
    count as if every folder had the same name."""
    request: dict[str, Any] = json.loads(text.replace(folder, "/bench"))
    messages = request.get("messages") or request.get("input") or []
    system = [request[k] for k in ("system", "instructions") if request.get(k)]
    system += [m for m in messages if m.get("role") in ("system", "developer")]
    talk = [m for m in messages if m.get("role") not in ("system", "developer")]
    results = [b for m in talk for b in (m["content"] if isinstance(m.get("content"), list) else [m])
               if b.get("type") in ("tool_result", "function_call_output", "custom_tool_call_output")]
    tools = request.get("tools") or []
    whole = "".join(json.dumps(plain(x), ensure_ascii=False) for x in (tools, system, *talk)).encode()
    named = (("tools", tools), ("system", system), ("results", results))
    size = {k: len(json.dumps(v, ensure_ascii=False).encode()) if v else 0 for k, v in named}
    return {**size, "text": whole, "total": len(whole)}


def common(a: bytes, b: bytes) -> int:
    """Returns the length of the common prefix."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[:middle] == b[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def check_files(folder: str, task: Task) -> None:
    """Fails unless the files have the texts that the task wrote, so that an agent whose tools refuse the calls has no figures."""
    for step in (s for prompt in task.prompts for s in prompt if s.kind in ("edit", "write") and s.old != NO_MATCH):
        with open(f"{folder}/{step.path}", encoding="utf-8") as file:
            if step.new.rstrip("\n") not in file.read():
                raise Refused(f"{step.path} has not the new text")


def run_task(context: Context, agent: Agent, task: Task, dump: str) -> list[dict[str, Any]]:
    """Runs one task in a new conversation and returns its requests in order."""
    os.makedirs(dump, exist_ok=True)
    project(agent.cwd)
    agent.fresh()
    for number_, prompt in enumerate(task.prompts):
        if number_:
            compact(agent)
        context.model.script(*({"calls": [call(agent, s)]} for s in prompt), {"say": "The work is done."}, dump=dump)
        agent.prompt(f"Please {task.name} as scripted.", 90)
        time.sleep(0.1)
        steps = [r for r in context.model.records() if r.get("step", -1) >= 0]
        if len(steps) < len(prompt) + 1:
            raise Refused(f"{len(steps)} of {len(prompt) + 1} scripted answers taken")
    check_files(agent.cwd, task)
    found = []
    for name in sorted(os.listdir(dump)):
        with open(f"{dump}/{name}", encoding="utf-8") as file:
            found.append(parts(file.read(), agent.folder))
    return found


def figures(requests: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums up the requests of a task. Requests for a title or a summary count, too."""
    shared = sum(common(a["text"], b["text"]) for a, b in zip(requests, requests[1:]))
    later = sum(r["total"] for r in requests[1:])
    each = [r["total"] for r in requests]
    most = {part: max(r[part] for r in requests) for part in ("system", "tools", "results")}
    return {"requests": len(requests), "each": each, "bytes": sum(each), **most, "shared": shared, "later": later}


def measure(context: Context, peer: Peer) -> dict[str, Any]:
    """Runs all tasks through one agent; each has a new process, so that no state of an earlier one is left."""
    found: dict[str, Any] = {}
    for index, task in enumerate(tasks()):
        agent = context.make(peer)
        try:
            project(agent.cwd)
            agent.start()
            found[task.name] = figures(run_task(context, agent, task, f"{context.folder}/dump-{peer.name}-{index}"))
        except (Refused, TimeoutError, EOFError, OSError, ValueError, KeyError) as error:
            found[task.name] = {"failed": f"{type(error).__name__}: {str(error)[:120]}"}
        finally:
            context.stop()
    return found


def total(found: dict[str, Any], names: list[str], key: str) -> int:
    return sum(found[n][key] for n in names)


def section(results: dict[str, Any]) -> list[str]:
    """Returns the section of the page. Totals are over the tasks that every agent finished."""
    every: dict[str, Any] = results.get("tokens") or {}
    if not every:
        return []
    peers = list(every)
    names = [t.name for t in tasks()]
    done = [n for n in names if all("failed" not in every[p].get(n, {"failed": ""}) for p in peers)]
    out = ["## Bytes and tokens to the model", "",
           f"{len(names)} scripted tasks; totals are over the {len(done)} that every agent finished.",
           "Bytes are UTF-8 bytes of tools, system prompt and conversation as JSON, without cache marks.",
           f"Tokens are an estimate: bytes / {BYTES_PER_TOKEN}.",
           "`repeated` is the share of a request that begins like the request before it: what a prompt cache can use.",
           "pi, oh-my-pi, opencode and Pinion use Anthropic Messages, codex uses OpenAI Responses.", "",
           "![Bytes to the model in all tasks](../images/compare-tokens.svg)", "",
           "| | " + " | ".join(peers) + " |", "|---|" + "--:|" * len(peers)]

    def line(title: str, values: list[str]) -> None:
        out.append(f"| {title} | " + " | ".join(values) + " |")

    one = done[0] if done else ""
    for key, title in (("system", "system prompt, bytes"), ("tools", "tool schemas, bytes")):
        line(title, [f"{every[p][one][key]:,}" if one else "-" for p in peers])
    line("requests", [f"{total(every[p], done, 'requests'):,}" for p in peers])
    line("bytes, all tasks", [f"{total(every[p], done, 'bytes'):,}" for p in peers])
    line("tokens (estimate), all tasks", [f"{total(every[p], done, 'bytes') // BYTES_PER_TOKEN:,}" for p in peers])
    line("bytes a request", [f"{total(every[p], done, 'bytes') // max(1, total(every[p], done, 'requests')):,}" for p in peers])
    line("bytes of tool results, all tasks", [f"{total(every[p], done, 'results'):,}" for p in peers])
    line("repeated", [f"{100 * total(every[p], done, 'shared') / max(1, total(every[p], done, 'later')):.1f} %" for p in peers])
    out += ["", "Bytes of each task:", "", "| task | " + " | ".join(peers) + " |", "|---|" + "--:|" * len(peers)]
    for name in names:
        line(name, [f"{every[p][name]['bytes']:,}" if "bytes" in every[p].get(name, {}) else "failed" for p in peers])
    reasons = [f"* {n}, {p}: {every[p][n]['failed']}" for p in peers for n in names if "failed" in every[p].get(n, {})]
    return [*out, "", *reasons, ""]


def picture(results: dict[str, Any]) -> str:
    every = results["tokens"]
    done = [t.name for t in tasks() if all("failed" not in f.get(t.name, {"failed": ""}) for f in every.values())]
    sums = {p: total(f, done, "bytes") / 1000 for p, f in every.items()}
    bars: list[tuple[str, float | None, str]] = [(p, size, number(size)) for p, size in sums.items()]
    fixed: list[tuple[str, float | None, str]] = []
    for peer, found in every.items():
        size = (found[done[0]]["system"] + found[done[0]]["tools"]) / 1000 if done else None
        fixed.append((peer, size, number(size) if size else "-"))
    return chart("What agents send to the model", [Panel("System prompt and tools, kB", fixed, False), Panel("All tasks, kB", bars, False)])
