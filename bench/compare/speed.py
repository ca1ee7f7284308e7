"""Measurements of time and memory. Each starts its own process and returns named values; CPU is that of the process tree."""
from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from . import servers, sessions
from .agents import Agent, Model, NotApplicable, Refused, make
from .install import Peer

Values = dict[str, float]


@dataclass
class Sizes:
    """Amounts of work. `quick` is for a check of the program itself."""

    deltas: int = 20_000
    short_deltas: int = 2_000
    argument_deltas: int = 5_000
    turns: int = 500
    output: int = 100_000_000
    fleet: int = 20
    session_entries: int = 20_000
    session_bytes: int = 50_000_000
    sessions: int = 2_000
    web_clients: int = 1_000
    timeout: float = 90.0

    @staticmethod
    def quick() -> Sizes:
        return Sizes(500, 100, 100, 10, 1_000_000, 2, 200, 500_000, 20, 20, 30.0)


@dataclass
class Context:
    """What every measurement gets."""

    model: Model
    folder: str
    sizes: Sizes
    serial: int = 0
    agents: list[Agent] = field(default_factory=list)

    def make(self, peer: Peer, *options: str, folder: str = "") -> Agent:
        """Prepares an agent with a home of its own. `stop` ends all of them."""
        self.serial += 1
        agent = make(peer, folder or f"{self.folder}/{peer.name}-{self.serial}", self.model, options)
        self.agents.append(agent)
        return agent

    def started(self, peer: Peer, *options: str) -> Agent:
        """Starts an agent and lets it answer once, so that lazy parts are loaded."""
        agent = self.make(peer, *options).start()
        self.model.script({"text": 5})
        agent.prompt("hello")
        agent.fresh()
        return agent

    def stop(self) -> None:
        for agent in self.agents:
            agent.stop()
        self.agents.clear()


def start(context: Context, peer: Peer) -> Values:
    """Start to the first answer of the protocol, memory a second later, then the first answer of the model."""
    home = f"{context.folder}/{peer.name}-home"
    first = not os.path.exists(home)
    if first:    # the first start of a home writes caches and databases: it is not what a user waits for
        context.make(peer, folder=home).start().stop()
    agent = context.make(peer, folder=home).start()
    wall, cpu = time.monotonic() - agent.child.started, agent.child.cpu()
    time.sleep(1.0)
    pss, rss, settled = agent.child.pss_mb(), agent.child.rss_mb(), agent.child.cpu()
    context.model.script({"text": 1})
    answer = agent.prompt("hello")
    return {"cpu_s": cpu, "wall_s": wall, "pss_mb": pss, "rss_mb": rss, "cpu_after_1s_s": settled, "first_answer_cpu_s": agent.child.cpu(),
            "first_answer_wall_s": wall + answer}


def fleet(context: Context, peer: Peer) -> Values:
    """Memory of many idle agents, and the CPU time that they use while idle."""
    agents = [context.make(peer) for _ in range(context.sizes.fleet)]
    for agent in agents:
        agent.start()
    time.sleep(3.0)
    before = sum(a.child.cpu() for a in agents)
    time.sleep(2.0)
    return {"pss_mb": sum(a.child.pss_mb() for a in agents), "idle_cpu_ms_per_s": (sum(a.child.cpu() for a in agents) - before) * 500,
            "start_cpu_s": before}


def answer(context: Context, peer: Peer, step: dict, *options: str) -> Values:
    """Runs one prompt with one scripted answer, and a short text after a call."""
    agent = context.started(peer, *options)
    agent.child.reset_peak()
    context.model.script(step, {"text": 1})
    written, cpu = agent.written(), agent.child.cpu()
    wall = agent.prompt("go on", context.sizes.timeout)
    if len(context.model.records()) != 1 + len(step.get("calls", [])):
        raise Refused(f"{len(context.model.records())} requests to the model")
    time.sleep(0.2)    # work that ends after the last event belongs to the answer
    return {"cpu_s": agent.child.cpu() - cpu, "wall_s": wall, "written_mb": (agent.written() - written) / 1e6,
            "peak_mb": agent.child.peak_mb()}


def stream(context: Context, peer: Peer) -> Values:
    return answer(context, peer, {"text": context.sizes.deltas, "size": 20})


def stream_short(context: Context, peer: Peer) -> Values:
    return answer(context, peer, {"text": context.sizes.short_deltas, "size": 20})


def stream_delta(context: Context, peer: Peer) -> Values:
    """The same with a format that sends only new text, for agents that have the choice."""
    if peer.kind != "pinion":
        raise NotApplicable("one format only")
    return answer(context, peer, {"text": context.sizes.deltas, "size": 20}, "--rpc-dialect", "pi-delta")


def written_file(context: Context, peer: Peer) -> Values:
    """A call of the writing tool whose arguments arrive in many deltas. The file must exist afterwards."""
    agent = context.started(peer)
    text = "".join(f"line {n:08} of file\n" for n in range(context.sizes.argument_deltas))
    call = agent.write_file("big.txt", text)
    if call is None:
        raise NotApplicable("no tool that writes a file from a JSON argument")
    call["deltas"] = context.sizes.argument_deltas
    agent.child.reset_peak()
    context.model.script({"calls": [call]}, {"text": 1})
    written, cpu = agent.written(), agent.child.cpu()
    wall = agent.prompt("write it", context.sizes.timeout)
    values = {"cpu_s": agent.child.cpu() - cpu, "wall_s": wall, "written_mb": (agent.written() - written) / 1e6,
              "peak_mb": agent.child.peak_mb()}
    if os.path.getsize(agent.cwd + "/big.txt") != len(text):
        raise Refused("the file differs")
    return values


def turns(context: Context, peer: Peer) -> Values:
    """Bash calls one after the other. The time of a turn is taken at the model: end of an answer to the next complete request."""
    agent = context.started(peer)
    count = context.sizes.turns
    # Agents stop a model that repeats the same call.
    context.model.script(*({"calls": [agent.bash(f"true {n}")]} for n in range(count)), {"text": 1})
    cpu = agent.child.cpu()
    wall = agent.prompt("run them", context.sizes.timeout * 4)
    cpu = agent.child.cpu() - cpu
    records = context.model.records()
    if len(records) != count + 1:
        raise Refused(f"{len(records)} requests instead of {count + 1}")
    gaps = [(b["start"] - a["end"]) * 1000 for a, b in zip(records, records[1:])]
    tenth = max(1, count // 10)
    return {"cpu_ms_per_turn": cpu / count * 1000, "wall_s": wall, "first_tenth_ms": statistics.median(gaps[:tenth]),
            "last_tenth_ms": statistics.median(gaps[-tenth:]), "last_request_kb": records[-1]["bytes"] / 1000}


def output(context: Context, peer: Peer) -> Values:
    """A command that prints a large file."""
    path = f"{context.folder}/output.txt"
    if not os.path.exists(path):
        with open(path, "wb") as file:
            for first in range(0, context.sizes.output // 100, 1000):
                lines = [b"%09d " % n + b"x" * 89 + b"\n" for n in range(first, first + 1000)]
                file.writelines(lines)
    agent = context.started(peer)
    agent.child.reset_peak()
    context.model.script({"calls": [agent.bash(f"cat {path}")]}, {"text": 1})
    cpu = agent.child.cpu()
    wall = agent.prompt("print it", context.sizes.timeout)
    records = context.model.records()
    return {"cpu_s": agent.child.cpu() - cpu, "wall_s": wall, "peak_mb": agent.child.peak_mb(),
            "to_model_kb": (records[-1]["bytes"] - records[0]["bytes"]) / 1000}


def abort_stream(context: Context, peer: Peer) -> Values:
    """An abort while the model streams 200 deltas a second."""
    if peer.kind == "floor":
        raise NotApplicable("has no abort")
    agent = context.started(peer)
    context.model.script({"text": 100_000, "pause": 0.005})
    agent.begin("talk")
    time.sleep(1.0)
    return {"ms": agent.abort() * 1000}


def abort_bash(context: Context, peer: Peer) -> Values:
    """An abort while a command sleeps."""
    if peer.kind == "floor":
        raise NotApplicable("has no abort")
    agent = context.started(peer)
    context.model.script({"calls": [agent.bash("sleep 600")]}, {"text": 1})
    agent.begin("sleep")
    time.sleep(1.5)
    return {"ms": agent.abort() * 1000}


def size(_: Context, peer: Peer) -> Values:
    """Bytes on disk of the program, its packages and its runtime."""
    total = files = 0
    for path in peer.paths:
        for folder, _dirs, names in os.walk(path) if os.path.isdir(path) else [(os.path.dirname(path), [], [os.path.basename(path)])]:
            files += len(names)
            total += sum(os.lstat(os.path.join(folder, n)).st_size for n in names)
    return {"mb": total / 1e6, "files": files}


def open_session(context: Context, peer: Peer) -> Values:
    return sessions.open_session(context, peer)


def list_sessions(context: Context, peer: Peer) -> Values:
    return sessions.list_sessions(context, peer)


MEASUREMENTS: dict[str, Callable[[Context, Peer], Values]] = {
    "size": size, "start": start, "stream_short": stream_short, "stream": stream, "stream_delta": stream_delta, "arguments": written_file,
    "turns": turns, "output": output, "abort_stream": abort_stream, "abort_bash": abort_bash, "fleet": fleet,
    "open_session": open_session, "list_sessions": list_sessions, "acp": servers.acp, "acp_mcp": servers.acp_mcp,
    "web": servers.web,
}
# Measurements that give the same value every time, or cost minutes.
ONCE = {"size", "fleet"}
