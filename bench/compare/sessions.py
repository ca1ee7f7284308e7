"""Stored sessions: writes them in the format of each agent, opens a large one and lists many."""
from __future__ import annotations

import glob
import json
import os
import random
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .agents import Codex, NotApplicable, Opencode, Pi, Refused

if TYPE_CHECKING:
    from .install import Peer
    from .speed import Context, Values

FIRST_TIME = 1_750_000_000
# Sessions in a listing are small: this many entries of this many bytes.
LISTED_ENTRIES = 40
LISTED_BYTES = 1000
# The session module of pi and oh-my-pi has no RPC command. The script calls it and measures only the call.
LISTER = """
const [module, cwd, folder] = process.argv.slice(1);
const { SessionManager } = await import(module);
const before = process.cpuUsage(), began = performance.now();
const found = await SessionManager.list(cwd, folder);
const used = process.cpuUsage(before);
console.log(JSON.stringify({ found: found.length, wall_s: (performance.now() - began) / 1000, cpu_s: (used.user + used.system) / 1e6 }));
"""


def words(rng: random.Random, size: int) -> str:
    """Returns text of about `size` bytes with the characters that JSON escapes now and then."""
    text = " ".join(f"{rng.getrandbits(20):x}" for _ in range(size // 6 + 1))
    return text[: size - 8] + '\n"q"\tz\n'


def pi_entries(cwd: str, count: int, size: int, identity: str) -> Iterator[str]:
    """Returns the lines of a session file of the pi family: prompts, calls, results and answers in turn."""
    rng = random.Random(11)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(FIRST_TIME))
    yield json.dumps({"type": "session", "version": 3, "id": identity, "timestamp": stamp, "cwd": cwd})
    usage = {"input": 100, "output": 10, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 110,
             "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}
    # Every session of the family begins with its model and thinking level.
    chosen = [{"type": "model_change", "id": "aaaaaaa1", "parentId": None, "timestamp": stamp, "provider": "mock", "modelId": "mock"},
              {"type": "thinking_level_change", "id": "aaaaaaa2", "parentId": "aaaaaaa1", "timestamp": stamp, "thinkingLevel": "off"}]
    yield from (json.dumps(entry, separators=(",", ":")) for entry in chosen)
    parent: str | None = "aaaaaaa2"
    for number in range(count):
        at = (FIRST_TIME + number) * 1000
        assistant = {"role": "assistant", "api": "anthropic-messages", "provider": "mock", "model": "mock", "usage": usage, "timestamp": at}
        message: dict[str, Any]
        if number % 4 == 0:
            message = {"role": "user", "content": [{"type": "text", "text": words(rng, 200)}], "timestamp": at}
        elif number % 4 == 1:
            call = {"type": "toolCall", "id": f"toolu_{number}", "name": "bash", "arguments": {"command": "ls"}}
            message = {**assistant, "stopReason": "toolUse", "content": [{"type": "text", "text": words(rng, size // 2)}, call]}
        elif number % 4 == 2:
            message = {"role": "toolResult", "toolCallId": f"toolu_{number - 1}", "toolName": "bash", "isError": False, "timestamp": at,
                       "content": [{"type": "text", "text": words(rng, max(200, size * 3 - 1400))}]}
        else:
            message = {**assistant, "stopReason": "stop", "content": [{"type": "text", "text": words(rng, size // 2)}]}
        identity = f"{number:08x}"
        yield json.dumps({"type": "message", "id": identity, "parentId": parent, "timestamp": stamp, "message": message},
                         separators=(",", ":"))
        parent = identity


def codex_items(count: int, size: int) -> Iterator[dict[str, Any]]:
    rng = random.Random(11)
    for number in range(count):
        if number % 4 == 1:
            yield {"type": "function_call", "name": "exec_command", "arguments": '{"cmd":"ls"}', "call_id": f"call_{number}"}
        elif number % 4 == 2:
            yield {"type": "function_call_output", "call_id": f"call_{number - 1}", "output": words(rng, size * 3)}
        else:
            role, kind = ("user", "input_text") if number % 4 == 0 else ("assistant", "output_text")
            yield {"type": "message", "role": role, "content": [{"type": kind, "text": words(rng, 200 if number % 4 == 0 else size // 2)}]}


def open_session(context: Context, peer: Peer) -> Values:
    """Opens a large session and reads all of its messages."""
    home = f"{context.folder}/{peer.name}-large"
    agent = context.make(peer, folder=home)
    if isinstance(agent, Pi) and peer.kind != "floor":
        return open_pi(context, agent)
    if isinstance(agent, Codex):
        return open_codex(context, agent, peer)
    raise NotApplicable("this program cannot fill its store")


def measured(agent: Any, opened: Any, read: Any) -> Values:
    """Runs both steps and returns what each cost."""
    agent.child.reset_peak()
    began, cpu = time.monotonic(), agent.child.cpu()
    opened()
    middle, wall = agent.child.cpu(), time.monotonic() - began
    peak = agent.child.peak_mb()
    size = len(read())
    return {"open_cpu_s": middle - cpu, "open_wall_s": wall, "open_peak_mb": peak, "read_cpu_s": agent.child.cpu() - middle,
            "cpu_s": agent.child.cpu() - cpu, "peak_mb": agent.child.peak_mb(), "kept_bytes": size}


def open_pi(context: Context, agent: Pi) -> Values:
    sizes = context.sizes
    path = f"{agent.folder}/large.jsonl"
    if not os.path.exists(path):
        each = sizes.session_bytes // sizes.session_entries
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in pi_entries(agent.cwd, sizes.session_entries, each, str(uuid.UUID(int=7))))
    agent.start()
    values = measured(agent, lambda: agent.request({"type": "switch_session", "sessionPath": path}, sizes.timeout),
                      lambda: messages(agent, sizes.timeout))
    agent.child.lines.whole = 1 << 20
    count = json.loads(agent.request({"type": "get_state"}))["data"].get("messageCount")
    if count != sizes.session_entries:
        raise Refused(f"the session has {count} messages instead of {sizes.session_entries}")
    return values


def messages(agent: Pi, timeout: float) -> bytes:
    try:
        return agent.request({"type": "get_messages"}, timeout)
    except Refused as error:
        if "get_messages_page" not in str(error) and "limit" not in str(error):
            raise
    found, cursor = b"", None
    while True:
        before = agent.child.lines.whole
        agent.child.lines.whole = 64 << 20
        page = agent.request({"type": "get_messages_page", **({"cursor": cursor} if cursor else {})}, timeout)
        agent.child.lines.whole = before
        found += page[:1]
        cursor = json.loads(page)["data"].get("nextCursor")
        if not cursor:
            return found


def open_codex(context: Context, agent: Codex, peer: Peer) -> Values:
    sizes = context.sizes
    mark = f"{agent.folder}/thread"
    if not os.path.exists(mark):
        agent.start()
        context.model.script({"text": 1})
        agent.prompt("hello")
        batch: list[dict[str, Any]] = []
        for item in codex_items(sizes.session_entries, sizes.session_bytes // sizes.session_entries):
            batch.append(item)
            if len(batch) == 100:
                agent.request("thread/inject_items", {"threadId": agent.thread, "items": batch})
                batch = []
        agent.request("thread/inject_items", {"threadId": agent.thread, "items": batch}) if batch else None
        with open(mark, "w", encoding="ascii") as file:
            file.write(agent.thread)
        agent.stop()
        agent = context.make(peer, folder=agent.folder)    # type: ignore[assignment]
    agent.start()
    with open(mark, encoding="ascii") as file:
        thread = file.read()
    # Items of `thread/inject_items` belong to the model's context and to no turn: there is nothing to read back.
    values = measured(agent, lambda: agent.request("thread/resume", {"threadId": thread, "excludeTurns": True}, sizes.timeout), bytes)
    return {name: value for name, value in values.items() if name.startswith("open_")}


def list_sessions(context: Context, peer: Peer) -> Values:
    """Lists stored sessions, in a home that has nothing else."""
    agent = context.make(peer, folder=f"{context.folder}/{peer.name}-many")
    if peer.kind == "floor":
        raise NotApplicable("has no sessions")
    if isinstance(agent, Pi):
        return list_pi(context, agent)
    if isinstance(agent, Codex):
        return list_codex(context, agent, peer)
    return list_opencode(context, agent, peer)    # type: ignore[arg-type]


def checked(found: int, wanted: int, values: Values) -> Values:
    if found != wanted:
        raise Refused(f"{found} sessions listed instead of {wanted}")
    return values


def list_pi(context: Context, agent: Pi) -> Values:
    count = context.sizes.sessions
    agent.configure()
    folder = f"{agent.home}/{agent.agent_folder}/sessions/--{agent.cwd.strip('/').replace('/', '-')}--"
    if not os.path.isdir(folder):
        os.makedirs(folder)
        lines = list(pi_entries(agent.cwd, LISTED_ENTRIES, LISTED_BYTES, "IDENTITY"))
        text = "\n".join(lines) + "\n"
        for number in range(count):
            identity = str(uuid.UUID(int=number))
            with open(f"{folder}/2025-06-15T15-06-40-000Z_{identity}.jsonl", "w", encoding="utf-8") as file:
                file.write(text.replace("IDENTITY", identity, 1))
    if agent.peer.kind != "pinion":
        found = call_lister(agent, folder, context.sizes.timeout)
        return checked(found.pop("found"), count, found)
    values: Values = {}
    text_found = b""
    for name in ("", "again_"):
        # The second time in another process, which has the cache of the first one.
        agent.start()
        agent.child.lines.whole = 64 << 20
        began, cpu = time.monotonic(), agent.child.cpu()
        text_found = agent.request({"type": "list_sessions", "scope": "cwd"}, context.sizes.timeout)
        values |= {f"{name}cpu_s": agent.child.cpu() - cpu, f"{name}wall_s": time.monotonic() - began}
        agent.stop()
    # Every round is a first listing: the cache of the listing goes.
    shutil.rmtree(f"{agent.home}/{agent.agent_folder}/cache", ignore_errors=True)
    return checked(len(json.loads(text_found)["data"]["sessions"]), count, values)


def call_lister(agent: Pi, folder: str, timeout: float) -> Any:
    script = agent.peer.argv[1]
    package = script[: script.index("/dist/")]
    module = f"{package}/dist/core/session-manager.js"
    options = ["--input-type=module", "-e"]
    if agent.peer.kind == "omp":
        module, options = f"{package}/src/session/session-manager.ts", ["-e"]
    result = subprocess.run([agent.peer.argv[0], *options, LISTER, module, agent.cwd, folder], capture_output=True, text=True,
                            timeout=timeout, env=agent.environment(), cwd=agent.cwd, check=False)
    if result.returncode:
        raise Refused(result.stderr.strip().splitlines()[-1][:200] if result.stderr.strip() else "the listing failed")
    return json.loads(result.stdout.strip().splitlines()[-1])


def list_codex(context: Context, agent: Codex, peer: Peer) -> Values:
    mark = f"{agent.folder}/made"
    if not os.path.exists(mark):
        agent.start()
        context.model.script({"calls": [agent.bash("true")], "repeat": 5}, {"text": 5})
        agent.prompt("hello")
        thread = agent.thread
        agent.stop()
        source = glob.glob(f"{agent.home}/.codex/sessions/**/*{thread}*", recursive=True)[0]
        with open(source, encoding="utf-8") as file:
            text = file.read()
        for number in range(context.sizes.sessions - 1):
            identity = f"01900000-0000-7000-8000-{number:012x}"
            with open(f"{os.path.dirname(source)}/rollout-2025-06-15T15-06-40-{identity}.jsonl", "w", encoding="utf-8") as file:
                file.write(text.replace(thread, identity))
        for path in glob.glob(f"{agent.home}/.codex/state_*"):    # the database is made from the files again
            os.remove(path)
        with open(mark, "w", encoding="ascii"):
            pass
        agent = context.make(peer, folder=agent.folder)    # type: ignore[assignment]
    agent.start()
    agent.child.lines.whole = 64 << 20
    began, cpu, found, cursor = time.monotonic(), agent.child.cpu(), 0, None
    while True:
        page = json.loads(agent.request("thread/list", {"limit": 100, "cursor": cursor}, context.sizes.timeout))["result"]
        found, cursor = found + len(page["data"]), page.get("nextCursor")
        if not cursor or not page["data"]:
            break
    return checked(found, context.sizes.sessions, {"cpu_s": agent.child.cpu() - cpu, "wall_s": time.monotonic() - began})


def list_opencode(context: Context, agent: Opencode, peer: Peer) -> Values:
    """The sessions are empty: the server can create them, but not fill them without a run each."""
    mark = f"{agent.folder}/made"
    if not os.path.exists(mark):
        agent.start()
        for _ in range(context.sizes.sessions):
            agent.request("POST", "/session", {})
        with open(mark, "w", encoding="ascii"):
            pass
        agent.stop()
        agent = context.make(peer, folder=agent.folder)    # type: ignore[assignment]
    agent.start()
    began, cpu = time.monotonic(), agent.child.cpu()
    found = json.loads(agent.request("GET", f"/session?limit={context.sizes.sessions}"))
    return checked(len(found), context.sizes.sessions, {"cpu_s": agent.child.cpu() - cpu, "wall_s": time.monotonic() - began})
