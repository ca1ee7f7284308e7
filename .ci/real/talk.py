"""A real model in front of our program: talk.py PROGRAM ADDRESS CONTEXT. Finds it, lets it answer, call a tool, be aborted,
answer again, and be asked more than fits."""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time

program, address, context = sys.argv[1], sys.argv[2], int(sys.argv[3])
home = tempfile.mkdtemp()
environment = {"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8", "LLAMA_CPP_BASE_URL": address}
LONG = 90


def fail(what, *more):
    print("FAILED:", what, *more)
    sys.exit(1)


class Agent:
    """The program in RPC mode; events in the order in which they came."""

    def __init__(self, *options):
        command = [program, "--mode", "rpc", "--no-session", "--no-context-files", "--no-skills", *options]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, cwd=home, text=True)
        self.lines: queue.Queue = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def send(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def until(self, wanted, seconds=LONG):
        """Everything up to the first line that is wanted."""
        seen: list = []
        end = time.monotonic() + seconds
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                fail("waited in vain; the last lines:", *seen[-3:])
            if line is None:
                fail("the program ended; the last lines:", *seen[-3:])
            seen.append(line)
            if wanted(line):
                return seen

    def say(self, text):
        self.send(id="say", type="prompt", message=text)
        return self.until(lambda line: line["type"] == "agent_settled")

    def get(self, kind):
        self.send(id=kind, type=kind)
        answer = self.until(lambda line: line.get("id") == kind)[-1]
        if not answer["success"]:
            fail(kind, answer)
        return answer.get("data")

    def end(self):
        self.process.stdin.close()
        if self.process.wait(timeout=20) != 0:
            fail("exit code", self.process.returncode)


def answers(lines):
    ends = [line["message"] for line in lines if line["type"] == "message_end"]
    return [message for message in ends if message["role"] == "assistant"]


def text(message):
    return "".join(block.get("text", "") for block in message["content"])


def deltas(lines, kind):
    updates = [line["assistantMessageEvent"] for line in lines if line["type"] == "message_update"]
    return [update["delta"] for update in updates if update["type"] == kind]


def found():
    """The model is in the list, with the window that the server gives it."""
    listed = subprocess.run([program, "--list-models", "--json"], env=environment, capture_output=True, text=True, timeout=30,
                            check=True)
    models = [model for model in json.loads(listed.stdout) if model["provider"] == "llama.cpp"]
    if len(models) != 1 or models[0]["contextWindow"] != context or sum(models[0]["cost"].values()) != 0:
        fail("the list of models:", listed.stdout, listed.stderr)
    # Nothing else is configured: it is what a new session asks.
    agent = Agent()
    model = agent.get("get_state")["model"]
    if model != models[0]:
        fail("the model of a new session:", model)
    if models[0] not in agent.get("get_available_models")["models"]:
        fail("get_available_models does not have it")
    agent.end()
    return model["id"]


def tool(model):
    """The model calls a tool, the tool runs, the model says what came of it."""
    agent = Agent("--provider", "llama.cpp", "--model", model, "--tools", "bash", "--system-prompt", "Use bash.")
    lines = agent.say("Run: echo hello")
    done = [line for line in lines if line["type"] == "tool_execution_end"]
    if len(done) != 1 or "hello" not in json.dumps(done[0]["result"]):
        fail("no tool ran:", *answers(lines))
    call, answer = answers(lines)[0], answers(lines)[-1]
    if call["stopReason"] != "toolUse" or not deltas(lines, "toolcall_delta"):
        fail("the call:", call)
    if answer["stopReason"] != "stop" or "hello" not in text(answer) or "".join(deltas(lines, "text_delta")) != text(answer):
        fail("the answer:", answer)
    agent.end()
    print("ok: it called", json.dumps(call["content"][-1].get("arguments")), "and said", repr(text(answer)))


def stream_and_abort(model):
    """An answer in pieces, with its tokens counted; one that is aborted in the middle; one after it."""
    agent = Agent("--model", "llama.cpp/" + model, "--no-tools", "--system-prompt", "Answer at length.")
    agent.send(id="say", type="prompt", message="Tell me a long story about a gear.")
    pieces = iter(range(5))
    agent.until(lambda line: bool(deltas([line], "text_delta")) and next(pieces, None) is None)
    agent.send(id="abort", type="abort")
    lines = agent.until(lambda line: line["type"] == "agent_settled")
    aborted = answers(lines)[-1]
    if aborted["stopReason"] != "aborted" or not text(aborted):
        fail("the aborted answer:", aborted)
    lines = agent.say("Say hello.")
    answer = answers(lines)[-1]
    usage = answer["usage"]
    # In how many pieces it comes depends on the machine. That of the story came in six at least.
    if answer["stopReason"] not in ("stop", "length") or "".join(deltas(lines, "text_delta")) != text(answer) or not text(answer):
        fail("the answer after an abort:", answer)
    if min(usage["input"] + usage["cacheRead"], usage["output"], usage["totalTokens"]) <= 0 or usage["cost"]["total"] != 0:
        fail("its tokens:", usage)
    print("ok:", len(deltas(lines, "text_delta")), "deltas,", usage["output"], "tokens after an abort:", repr(text(answer)[:60]))
    agent.end()


def overflow(model):
    """More than fits is refused by the server, is said as an error, and harms nothing that comes after."""
    agent = Agent("--model", "llama.cpp/" + model, "--no-tools", "--system-prompt", "Be brief.")
    lines = agent.say("gear " * (2 * context))
    answer = answers(lines)[-1]
    if answer["stopReason"] != "error" or "context" not in answer["errorMessage"]:
        fail("the answer to too much:", answer)
    if any(line["type"] == "auto_retry_start" for line in lines):
        fail("too much was tried again")
    agent.send(id="new", type="new_session")
    agent.until(lambda line: line.get("id") == "new")
    after = answers(agent.say("Say hello."))[-1]
    if after["stopReason"] not in ("stop", "length") or not text(after):
        fail("the answer after too much:", after)
    print("ok: too much was refused:", answer["errorMessage"][:90])
    agent.end()


name = found()
print("ok: found", name, "with a window of", context)
tool(name)
stream_and_abort(name)
overflow(name)
