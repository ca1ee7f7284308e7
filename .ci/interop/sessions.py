#!/usr/bin/env python3
"""A session goes back and forth between two agents: sessions.py OURS CONFORMANCE_KIT KIND COMMAND...

Each opens what the other wrote, must see the same conversation, and continues it; once beginning with ours, once with the
other. KIND is `pi` or `omp`: where it looks for its models and how it is told which session to open.
"""
import json
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading

OURS, KIT, KIND = sys.argv[1:4]
OTHER = sys.argv[4:]
sys.path.insert(0, KIT)
from mockllm import MockLLM  # noqa: E402

LIMIT = 60
PI = {"args": ["--provider", "mock", "--model", "claude-mock"], "open": "--session"}
OMP = {
    "args": ["--model", "mock/claude-mock", "--no-title", "--no-lsp", "--no-skills", "--no-rules", "--no-extensions"],
    "open": "--resume",
}


class Agent:
    """A running `--mode rpc`."""

    def __init__(self, program, root, session=None):
        kind = OMP if program is OTHER and KIND == "omp" else PI
        self.name = "ours" if program is not OTHER else KIND
        env = {
            "PATH": os.environ["PATH"], "HOME": str(root / "home"), "TMPDIR": str(root), "LANG": "C.UTF-8",
            "PI_CODING_AGENT_DIR": str(root / "agent"), "PI_OFFLINE": "1", "PI_TELEMETRY": "0", "OMP_SKIP_VERSION_CHECK": "1",
        }
        command = [*program, "--mode", "rpc", *kind["args"]]
        if session:
            command += [kind["open"], session]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=env, cwd=root / "cwd", text=True)
        self.lines: queue.Queue = queue.Queue()
        self.seen: list = []
        self.errors: list = []
        threading.Thread(target=self.read, daemon=True).start()
        threading.Thread(target=lambda: self.errors.extend(self.process.stderr), daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def wait(self, fits):
        while True:
            line = self.lines.get(timeout=LIMIT)
            if line is None:
                sys.exit(f"{self.name} ended: {''.join(self.errors)}")
            self.seen.append(line)
            if fits(line):
                return line

    def call(self, kind, **fields):
        self.process.stdin.write(json.dumps({"id": kind, "type": kind, **fields}) + "\n")
        self.process.stdin.flush()
        answer = self.wait(lambda line: line.get("id") == kind and line.get("type") == "response")
        if not answer["success"]:
            sys.exit(f"{self.name}: {answer}")
        return answer.get("data", {})

    def say(self, text):
        self.call("prompt", message=text)
        self.wait(lambda line: line["type"] == "agent_end" and not line.get("willRetry"))

    def end(self):
        self.process.stdin.close()
        self.process.wait(LIMIT)


def shape(message):
    """What both must agree on."""
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    kept = {key: message[key] for key in ("role", "stopReason", "toolCallId", "toolName", "isError", "command", "output",
                                          "exitCode", "provider", "model", "timestamp") if key in message}
    if content is not None:
        kept["content"] = content
    return kept


def round_trip(first, second, names):
    script = []
    for turn in ("one", "two", "three"):
        script.append({"stream": [
            {"thinking": ["Let me see."], "signature": f"sig-{turn}"},
            {"text": [f"Answer {turn}, first part. \u00fc\u2028\U0001f600"]},
            {"tool": {"id": f"toolu_{turn}", "name": "bash", "args": {"command": f"echo tool-{turn}"}}},
        ]})
        script.append({"stream": [{"text": [f"Answer {turn} is complete."]}]})
    mock = MockLLM(script, chunk_delay=0.001).start()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in ("home", "agent", "cwd"):
            (root / name).mkdir()
        models = {"providers": {"mock": {
            "baseUrl": f"{mock.url}/anthropic", "api": "anthropic-messages", "apiKey": "mock-key",
            "models": [{"id": "claude-mock", "name": "Mock", "reasoning": True, "input": ["text"],
                        "contextWindow": 200000, "maxTokens": 32000,
                        "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}}],
        }}}
        for name in ("models.json", "models.yml"):  # JSON is YAML, too
            (root / "agent" / name).write_text(json.dumps(models))

        agent = Agent(first, root)
        agent.say("Question one")
        agent.call("bash", command="echo typed by the user")
        agent.call("set_session_name", name="Back and forth")
        file = agent.call("get_state")["sessionFile"]
        expected = [shape(message) for message in agent.call("get_messages")["messages"]]
        agent.end()
        for turn, program in (("two", second), ("three", first)):
            expected = continued(program, root, file, expected, turn)
        # Each reads what both wrote, and nothing is missing from what the model was told.
        for program in (first, second):
            agent = Agent(program, root, file)
            same(agent, expected)
            agent.end()
        told = json.dumps(mock.requests[-1]["body"], ensure_ascii=False)
        for text in ("Question one", "tool-one", "sig-one", "typed by the user", "Question two", "tool-two", "Question three"):
            if text not in told:
                sys.exit(f"{names}: the model was not told {text!r}")
        lines = pathlib.Path(file).read_text().strip("\n").split("\n")
        for line in lines:
            json.loads(line)
    mock.stop()
    print(f"ok: {names}: {len(expected)} messages, {len(lines)} lines")


def continued(program, root, file, expected, turn):
    agent = Agent(program, root, file)
    same(agent, expected)
    state = agent.call("get_state")
    # oh-my-pi keeps the name in the header and does not look for pi's session_info.
    named = agent.name == "omp" or state.get("sessionName") == "Back and forth"
    if not named or state["model"]["id"] != "claude-mock":
        sys.exit(f"{agent.name}: name or model are lost: {state}")
    agent.say(f"Question {turn}")
    messages = [shape(message) for message in agent.call("get_messages")["messages"]]
    agent.end()
    if messages[:len(expected)] != expected or len(messages) != len(expected) + 4:
        sys.exit(f"{agent.name}: the conversation did not go on as it should: {messages[len(expected):]}")
    return messages


def same(agent, expected):
    messages = [shape(message) for message in agent.call("get_messages")["messages"]]
    if messages != expected:
        differ = [pair for pair in zip(messages, expected) if pair[0] != pair[1]]
        sys.exit(f"{agent.name} sees {len(messages)} messages instead of {len(expected)}; different: {differ[:2]}")
    damage = [line for line in agent.seen if line["type"] in ("session_damage", "notice", "extension_error")]
    if damage:
        sys.exit(f"{agent.name} complains: {damage}")


ours = [OURS]
round_trip(ours, OTHER, f"ours, {KIND}, ours")
round_trip(OTHER, ours, f"{KIND}, ours, {KIND}")
