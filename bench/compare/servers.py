"""Measurements of other protocols: the Agent Client Protocol over pipes, and Pinion's web server with many clients."""
from __future__ import annotations

import contextlib
import json
import re
import resource
import selectors
import socket
import time
from typing import TYPE_CHECKING, Any

from .agents import START_TIMEOUT, Agent, NotApplicable, Refused
from .process import Child

if TYPE_CHECKING:
    from collections.abc import Callable

    from .install import Peer
    from .speed import Context, Values

ACP_OPTIONS = {"pinion": ["acp", "--provider", "mock", "--model", "mock"], "omp": ["acp", "--model", "mock/mock"], "opencode": ["acp"]}
# Options with which an agent's own protocol sends only new text, as ACP does.
DELTA_OPTIONS = {"pinion": ("--rpc-dialect", "pi-delta")}
MCP_SERVERS = 10
WEB_TOKEN = "bench-0123456789abcdef0123456789abcdef"
# The web server is measured at the pace of a fast model: deltas a second, and seconds.
WEB_RATE, WEB_SECONDS = 100, 5


class AcpClient:
    """JSON-RPC requests over the pipes of a child. It allows whatever the agent asks for."""

    def __init__(self, child: Child) -> None:
        self.child, self.serial = child, 0
        child.lines.whole = 1 << 20

    def request(self, method: str, params: dict[str, Any], timeout: float = 60.0) -> Any:
        self.serial += 1
        mark = re.compile(rb'"id": ?%d[,}]' % self.serial)
        expected = self.child.lines.expect(
            lambda head, tail: bool(mark.search(head[:60] + b" " + tail[-60:])) and b'"method"' not in head[:200])
        self.child.write(json.dumps({"jsonrpc": "2.0", "id": self.serial, "method": method, "params": params}).encode() + b"\n")
        answer = json.loads(expected.wait(timeout))
        if "error" in answer:
            raise Refused(f"{method}: {answer['error'].get('message')}")
        return answer["result"]


def acp_client(context: Context, peer: Peer) -> tuple[Agent, AcpClient]:
    """Starts the ACP server of an agent and calls `initialize`."""
    if peer.kind not in ACP_OPTIONS:
        raise NotApplicable("the package has no ACP server")
    agent: Agent = context.make(peer, folder=f"{context.folder}/{peer.name}-acp")
    agent.configure()
    agent.child = Child([*peer.argv, *ACP_OPTIONS[peer.kind]], agent.cwd, agent.environment(), agent.folder + "/stderr")
    client = AcpClient(agent.child)
    client.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}}, START_TIMEOUT)
    return agent, client


def acp(context: Context, peer: Peer) -> Values:
    """Start to `initialize`, `session/new`, and an answer of many deltas, which the agent's own protocol brings as well."""
    agent, client = acp_client(context, peer)
    wall, cpu = time.monotonic() - agent.child.started, agent.child.cpu()
    began = time.monotonic()
    session = client.request("session/new", {"cwd": agent.cwd, "mcpServers": []})["sessionId"]
    new_wall, new_cpu = time.monotonic() - began, agent.child.cpu() - cpu
    count = context.sizes.short_deltas
    prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "hello"}]}
    context.model.script({"text": 5})
    client.request("session/prompt", prompt)
    lines = agent.child.lines.count
    delta = delta_cpu(context, agent, lambda: client.request("session/prompt", prompt, context.sizes.timeout))
    lines = agent.child.lines.count - lines
    agent.stop()
    own = context.started(peer, *DELTA_OPTIONS.get(peer.kind, ()))
    own_delta = delta_cpu(context, own, lambda: own.prompt("hello", context.sizes.timeout))
    return {"initialize_ms": wall * 1000, "initialize_cpu_ms": cpu * 1000, "new_ms": new_wall * 1000, "new_cpu_ms": new_cpu * 1000,
            "delta_cpu_us": delta / count * 1e6, "own_delta_cpu_us": own_delta / count * 1e6, "messages": float(lines)}


def delta_cpu(context: Context, agent: Agent, ask: Callable[[], object]) -> float:
    """CPU seconds of an answer of `short_deltas`."""
    context.model.script({"text": context.sizes.short_deltas, "size": 20})
    before = agent.child.cpu()
    ask()
    time.sleep(0.2)    # work that ends after the last message belongs to the answer
    return agent.child.cpu() - before


def acp_mcp(context: Context, peer: Peer) -> Values:
    """`session/new` with MCP servers that never answer, in a process that has opened a session before."""
    agent, client = acp_client(context, peer)
    client.request("session/new", {"cwd": agent.cwd, "mcpServers": []})
    servers = [{"name": f"silent{n}", "command": "sleep", "args": ["600"], "env": []} for n in range(MCP_SERVERS)]
    began = time.monotonic()
    client.request("session/new", {"cwd": agent.cwd, "mcpServers": servers}, context.sizes.timeout)
    return {"ms": (time.monotonic() - began) * 1000}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def connect(port: int, request: bytes, patience: float) -> socket.socket:
    """Connects and sends a request; repeats while the server does not listen yet."""
    until = time.monotonic() + patience
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port), timeout=10)
            connection.sendall(request)
            return connection
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def web(context: Context, peer: Peer) -> Values:
    """Event streams of many clients: memory of an idle connection, and CPU of an answer that all of them read."""
    if peer.kind != "pinion":
        raise NotApplicable("measured for Pinion only")
    clients = context.sizes.web_clients
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < clients + 200:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, clients + 200), hard))
    agent = context.make(peer)
    agent.configure()
    port = free_port()
    command = [*peer.argv, "--mode", "web", "--port", str(port), "--web-token", WEB_TOKEN, "--provider", "mock", "--model", "mock"]
    agent.child = Child(command, agent.cwd, agent.environment(), agent.folder + "/stderr")
    head = f"HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {WEB_TOKEN}\r\n".encode()
    first = connect(port, b"GET /api/events " + head + b"\r\n", START_TIMEOUT)
    time.sleep(0.5)
    alone = agent.child.pss_mb()
    streams = [first]
    try:
        for _ in range(clients - 1):
            streams.append(connect(port, b"GET /api/events " + head + b"\r\n", 10))
        time.sleep(1.0)
        idle = agent.child.pss_mb()
        agent.child.reset_peak()
        context.model.script({"text": WEB_RATE * WEB_SECONDS, "pause": 1 / WEB_RATE})
        body = b'{"type":"prompt","message":"hello"}'
        cpu, began = agent.child.cpu(), time.monotonic()
        post = b"POST /api/command " + head + b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body
        with connect(port, post, 10) as asking:
            if b" 200 " not in asking.recv(200):
                raise Refused("the prompt was not accepted")
        size = read_all(streams, context.sizes.timeout)
        return {"kb_per_client": (idle - alone) * 1024 / clients, "cpu_s": agent.child.cpu() - cpu, "wall_s": time.monotonic() - began,
                "peak_mb": agent.child.peak_mb(), "sent_mb": size / 1e6}
    finally:
        for stream in streams:
            stream.close()


def read_all(streams: list[socket.socket], timeout: float) -> int:
    """Reads every stream until it has seen the end of the run; returns all bytes."""
    until, size = time.monotonic() + timeout, 0
    with selectors.DefaultSelector() as waiting:
        for stream in streams:
            stream.setblocking(False)
            waiting.register(stream, selectors.EVENT_READ, b"")
        while waiting.get_map():
            if time.monotonic() > until:
                raise TimeoutError(f"{len(waiting.get_map())} clients did not see the end of the run")
            for key, _ in waiting.select(1.0):
                data = b""
                with contextlib.suppress(BlockingIOError):
                    data = key.fileobj.recv(1 << 18)    # type: ignore[union-attr]
                    if not data:
                        raise EOFError("the server closed an event stream")
                size += len(data)
                tail = key.data + data
                if b'"agent_end"' in tail:
                    waiting.unregister(key.fileobj)
                else:
                    waiting.modify(key.fileobj, selectors.EVENT_READ, tail[-40:])
    return size
