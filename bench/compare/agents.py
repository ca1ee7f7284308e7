"""Drives the agents: one class per protocol, the same few operations for the measurements."""
from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from typing import Any

from .install import Peer
from .process import Child, Expected, Lines

START_TIMEOUT = 120.0
REPLY_TIMEOUT = 60.0
CONTEXT_WINDOW = 100_000_000


class Refused(RuntimeError):
    """The agent answered with an error."""


class NotApplicable(RuntimeError):
    """The peer has nothing that corresponds to the measurement."""


class Model:
    """The scripted model server in a process of its own."""

    def __init__(self) -> None:
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        self.process = subprocess.Popen([sys.executable, "-m", "compare.model"], cwd=package, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def control(self, method: str, value: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, "/control", json.dumps(value) if value is not None else None)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def script(self, *steps: dict[str, Any], dump: str = "") -> None:
        self.control("POST", {"steps": list(steps), "dump": dump})

    def records(self) -> list[dict[str, Any]]:
        """Returns the records of requests that offered tools, in order."""
        return [r for r in self.control("GET") if not r.get("side")]

    def stop(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Agent:
    """A running agent. `stop` must be called."""

    def __init__(self, peer: Peer, folder: str, port: int, options: tuple[str, ...] = ()) -> None:
        self.peer, self.port, self.options = peer, port, options
        self.folder = folder
        self.home, self.cwd = folder + "/home", folder + "/project"
        for path in (self.home, self.cwd, folder + "/tmp"):
            os.makedirs(path, exist_ok=True)
        self.serial = 0
        self.child: Child
        self.done: Expected

    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": self.home, "TMPDIR": self.folder + "/tmp", "LANG": "C.UTF-8",
                "SHELL": "/bin/bash", "TERM": "dumb", "NO_COLOR": "1", "BENCH_KEY": "none"}

    def command(self) -> list[str]:
        return [*self.peer.argv, *self.options]

    def configure(self) -> None:
        raise NotImplementedError

    def handshake(self) -> None:
        raise NotImplementedError

    def begin(self, text: str) -> None:
        """Starts a run; `self.done` is the line that ends it."""
        raise NotImplementedError

    def cancel(self) -> None:
        raise NotImplementedError

    def fresh(self) -> None:
        """Starts an empty conversation in the same process."""
        raise NotImplementedError

    def bash(self, command: str) -> dict[str, Any]:
        return {"name": "bash", "arguments": {"command": command}}

    def write_file(self, path: str, text: str) -> dict[str, Any] | None:
        return {"name": "write", "arguments": {"path": path, "content": text}}

    def spawn(self) -> None:
        self.configure()
        self.child = Child(self.command(), self.cwd, self.environment(), self.folder + "/stderr")

    def start(self) -> Agent:
        self.spawn()
        try:
            self.handshake()
        except BaseException:
            self.stop()
            raise
        return self

    def prompt(self, text: str, timeout: float = REPLY_TIMEOUT) -> float:
        """Runs a prompt to its end and returns wall seconds."""
        began = time.monotonic()
        self.begin(text)
        self.done.wait(timeout)
        return self.done.at - began

    def abort(self, timeout: float = REPLY_TIMEOUT) -> float:
        began = time.monotonic()
        self.cancel()
        self.done.wait(timeout)
        return self.done.at - began

    def written(self) -> int:
        """Returns the bytes that the agent has sent to its client."""
        return self.child.lines.bytes

    def stop(self) -> None:
        if hasattr(self, "child"):
            self.child.stop()

    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class Pi(Agent):
    """`--mode rpc` of the pi family: JSON lines over standard input and output."""

    agent_folder = ".pi/agent"
    models_file = "models.json"
    select: tuple[str, ...] = ("--provider", "mock", "--model", "mock")

    def environment(self) -> dict[str, str]:
        off = {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0", "OMP_SKIP_VERSION_CHECK": "1"}
        return {**super().environment(), **off}

    def configure(self) -> None:
        folder = os.path.join(self.home, self.agent_folder)
        os.makedirs(folder, exist_ok=True)
        model = {"id": "mock", "name": "mock", "reasoning": False, "input": ["text"], "contextWindow": CONTEXT_WINDOW, "maxTokens": 100_000,
                 "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}
        provider = {"baseUrl": self.base(), "api": "anthropic-messages", "apiKey": "none", "models": [model]}
        with open(os.path.join(folder, self.models_file), "w", encoding="utf-8") as file:
            json.dump({"providers": {"mock": provider}}, file)    # also valid YAML

    def command(self) -> list[str]:
        return [*self.peer.argv, "--mode", "rpc", *self.select, *self.options]

    def request(self, value: dict[str, Any], timeout: float = REPLY_TIMEOUT) -> bytes:
        self.serial += 1
        mark = f'"bench-{self.serial}"'.encode()
        expected = self.child.lines.expect(
            lambda head, tail: b'"response"' in head[:200] + tail[-200:] and (mark in head[:400] or mark in tail[-400:]))
        self.child.write(json.dumps({"id": f"bench-{self.serial}", **value}).encode() + b"\n")
        found = expected.wait(timeout)
        if b'"success":false' in found[:400] or b'"success":false' in found[-400:]:
            raise Refused(found[:300].decode(errors="replace"))
        return found

    def handshake(self) -> None:
        self.request({"type": "get_state"}, START_TIMEOUT)

    def begin(self, text: str) -> None:
        self.done = self.child.lines.expect(lambda head, tail: head.startswith(b'{"type":"agent_end"') or (
            b'"type":"agent_end"' in head[:200] + tail[-200:] and b'"assistantMessageEvent"' not in head[:200]))
        self.request({"type": "prompt", "message": text})

    def cancel(self) -> None:
        self.child.write(b'{"type":"abort"}\n')

    def fresh(self) -> None:
        self.request({"type": "new_session"})


class OhMyPi(Pi):
    """oh-my-pi: the same protocol with its own folders."""

    agent_folder = ".omp/agent"
    models_file = "models.yml"
    select = ("--model", "mock/mock")


class Floor(Pi):
    """The floor program: enough of the protocol of pi for the measurements."""

    def configure(self) -> None:
        return

    def command(self) -> list[str]:
        return [*self.peer.argv, str(self.port)]

    def write_file(self, path: str, text: str) -> dict[str, Any] | None:
        return None


class Codex(Agent):
    """`codex app-server`: JSON-RPC over standard input and output, OpenAI Responses at the model."""

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "CODEX_HOME": self.home + "/.codex"}

    def configure(self) -> None:
        os.makedirs(self.home + "/.codex", exist_ok=True)
        with open(self.home + "/.codex/config.toml", "w", encoding="utf-8") as file:
            file.write(f'''model = "mock"
model_provider = "bench"
approval_policy = "never"
sandbox_mode = "danger-full-access"
model_context_window = {CONTEXT_WINDOW}
model_auto_compact_token_limit = {CONTEXT_WINDOW // 10 * 9}
check_for_update_on_startup = false
[model_providers.bench]
name = "bench"
base_url = "{self.base()}/v1"
wire_api = "responses"
env_key = "BENCH_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
''')
        self.thread = ""
        self.turn = ""

    def command(self) -> list[str]:
        return [*self.peer.argv, "app-server", *self.options]

    def request(self, method: str, params: dict[str, Any], timeout: float = REPLY_TIMEOUT) -> bytes:
        self.serial += 1
        mark = f'"id":{self.serial}'.encode()
        expected = self.child.lines.expect(lambda head, _: head.startswith((b"{" + mark + b",", b'{"jsonrpc":"2.0",' + mark + b",")))
        self.child.write(json.dumps({"id": self.serial, "method": method, "params": params}).encode() + b"\n")
        found = expected.wait(timeout)
        if b'"error"' in found[:80]:
            raise Refused(found[:300].decode(errors="replace"))
        return found

    def handshake(self) -> None:
        self.request("initialize", {"clientInfo": {"name": "bench", "version": "1"}}, START_TIMEOUT)
        self.child.write(b'{"method":"initialized"}\n')

    def begin(self, text: str) -> None:
        if not self.thread:
            answer = self.request("thread/start", {"cwd": self.cwd, "approvalPolicy": "never", "sandbox": "danger-full-access"})
            self.thread = json.loads(answer)["result"]["thread"]["id"]
        self.done = self.child.lines.expect(lambda head, _: b'"turn/completed"' in head[:120])
        answer = self.request("turn/start", {"threadId": self.thread, "input": [{"type": "text", "text": text}]})
        self.turn = json.loads(answer)["result"]["turn"]["id"]

    def prompt(self, text: str, timeout: float = REPLY_TIMEOUT) -> float:
        wall = super().prompt(text, timeout)
        if self.done.found and b'"status":"failed"' in self.done.found:
            raise Refused(self.done.found[-300:].decode(errors="replace"))
        return wall

    def cancel(self) -> None:
        value = {"id": 900_000 + self.serial, "method": "turn/interrupt", "params": {"threadId": self.thread, "turnId": self.turn}}
        self.child.write(json.dumps(value).encode() + b"\n")

    def fresh(self) -> None:
        self.thread = ""

    def bash(self, command: str) -> dict[str, Any]:
        return {"name": "exec_command", "arguments": {"cmd": command, "yield_time_ms": 30_000}}

    def write_file(self, path: str, text: str) -> dict[str, Any] | None:
        return None


class Opencode(Agent):
    """`opencode serve`: HTTP commands and a stream of server-sent events."""

    def environment(self) -> dict[str, str]:
        off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")
        return {**super().environment(), **{f"OPENCODE_DISABLE_{x}": "1" for x in off}}

    def configure(self) -> None:
        folder = self.home + "/.config/opencode"
        os.makedirs(folder, exist_ok=True)
        model = {"name": "mock", "tool_call": True, "limit": {"context": CONTEXT_WINDOW, "output": 100_000}}
        provider = {"npm": "@ai-sdk/anthropic", "name": "mock", "options": {"baseURL": self.base() + "/v1", "apiKey": "none"},
                    "models": {"mock": model}}
        with open(folder + "/opencode.json", "w", encoding="utf-8") as file:
            json.dump({"autoupdate": False, "share": "disabled", "permission": "allow", "model": "mock/mock", "small_model": "mock/mock",
                       "provider": {"mock": provider}}, file)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.web = free.getsockname()[1]
        self.session = ""
        self.events: Lines

    def command(self) -> list[str]:
        return [*self.peer.argv, "serve", "--port", str(self.web), *self.options]

    def request(self, method: str, path: str, value: Any = None, timeout: float = REPLY_TIMEOUT) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.web, timeout=timeout)
        try:
            connection.request(method, path, json.dumps(value) if value is not None else None, {"content-type": "application/json"})
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise Refused(f"{method} {path}: {answer.status} {data[:200]!r}")
        return data

    def handshake(self) -> None:
        listening = self.child.lines.expect(lambda head, _: b"listening on" in head)
        if not any(b"listening on" in x for x in self.child.lines.last):
            listening.wait(START_TIMEOUT)
        self.request("GET", "/session", timeout=START_TIMEOUT)
        self.stream = http.client.HTTPConnection("127.0.0.1", self.web, timeout=3600)
        self.stream.request("GET", "/event")
        answer = self.stream.getresponse()
        self.events = Lines(answer.read1)

    def begin(self, text: str) -> None:
        if not self.session:
            self.session = json.loads(self.request("POST", "/session", {}))["id"]
        own = self.session.encode()
        self.done = self.events.expect(lambda head, _: b'"session.idle"' in head[:120] and own in head)
        body = {"parts": [{"type": "text", "text": text}], "model": {"providerID": "mock", "modelID": "mock"}}
        self.request("POST", f"/session/{self.session}/prompt_async", body)

    def cancel(self) -> None:
        self.request("POST", f"/session/{self.session}/abort", {})

    def fresh(self) -> None:
        self.session = ""

    def bash(self, command: str) -> dict[str, Any]:
        return {"name": "bash", "arguments": {"command": command, "description": "run a command"}}

    def write_file(self, path: str, text: str) -> dict[str, Any] | None:
        return {"name": "write", "arguments": {"filePath": os.path.join(self.cwd, path), "content": text}}

    def written(self) -> int:
        return self.events.bytes

    def stop(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            self.stream.sock.shutdown(socket.SHUT_RDWR)
        super().stop()


KINDS: dict[str, type[Agent]] = {"pinion": Pi, "pi": Pi, "omp": OhMyPi, "floor": Floor, "codex": Codex, "opencode": Opencode}


def make(peer: Peer, folder: str, model: Model, options: tuple[str, ...] = ()) -> Agent:
    return KINDS[peer.kind](peer, folder, model.port, options)
