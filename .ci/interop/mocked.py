#!/usr/bin/env python3
"""Runs somebody else's client in front of our program: mocked.py PROGRAM CONFORMANCE_KIT COMMAND...

Starts the scripted model of the conformance kit and a folder with a configuration that names it, then the command, which is
told everything by its environment: PI_PROGRAM (ours, under the name `pi`), PI_WORK (the working folder), PI_CODING_AGENT_DIR,
HOME. When the command ends, nothing of ours may run any more, and the model must have been told what the client said.

The conversation is the same for every client:
 1. "Run the tool"   -> thinking, text in pieces, a call of bash (`echo ran-by-the-agent`); then "The answer is complete."
 2. "Hang"           -> "Begun", and then nothing until the client aborts.
 3. "After that"     -> "Still alive."
and for clients that bring a tool of their own, `lookup`, these two more:
 4. "Ask the host"   -> a call of lookup {"key": "colour"}; then "The host has answered."
 5. "Ask it slowly"  -> a call of lookup {"key": "slow"}, in which the client aborts.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM, KIT = sys.argv[1:3]
COMMAND = sys.argv[3:]
sys.path.insert(0, KIT)
from mockllm import MockLLM  # noqa: E402

LIMIT = 120
SCRIPT = [
    {"stream": [
        {"thinking": ["Let me ", "see."], "signature": "sig"},
        {"text": ["I shall ", "run ", "it. \u00fc\u2028\U0001f600"]},
        {"tool": {"id": "toolu_1", "name": "bash", "args": {"command": "echo ran-by-the-agent"}}},
    ]},
    {"stream": [{"text": ["The answer ", "is ", "complete."]}]},
    {"stream": [{"text": ["Begun"]}, {"gate": "never opened"}]},
    {"stream": [{"text": ["Still ", "alive."]}]},
    {"stream": [{"tool": {"id": "toolu_2", "name": "lookup", "args": {"key": "colour"}}}]},
    {"stream": [{"text": ["The host ", "has answered."]}]},
    {"stream": [{"tool": {"id": "toolu_3", "name": "lookup", "args": {"key": "slow"}}}]},
]
TOLD = ["Run the tool", "ran-by-the-agent", "Hang", "After that", "Ask the host", "blue, says the host", "Ask it slowly"]


def left_over(program):
    """The running processes whose program is this file."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            target = os.readlink(entry / "exe")
            if target.split(" (deleted)")[0] == str(program):
                found.append(entry.name)
        except OSError:
            continue
    return found


def end(program):
    for process in left_over(program):
        os.kill(int(process), signal.SIGKILL)


def main():
    mock = MockLLM(SCRIPT, chunk_delay=0.01).start()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in ("home", "agent", "work", "bin"):
            (root / name).mkdir()
        program = root / "bin" / "pi"  # a copy, so that its processes are told from those of other runs
        shutil.copy2(PROGRAM, program)
        models = {"providers": {"mock": {
            "baseUrl": f"{mock.url}/anthropic", "api": "anthropic-messages", "apiKey": "mock-key",
            "models": [{"id": "claude-mock", "name": "Mock", "reasoning": True, "input": ["text"],
                        "contextWindow": 200000, "maxTokens": 32000,
                        "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}}],
        }}}
        (root / "agent" / "models.json").write_text(json.dumps(models))
        env = {
            "PATH": f"{root / 'bin'}:{os.environ['PATH']}", "HOME": str(root / "home"), "TMPDIR": str(root), "LANG": "C.UTF-8",
            "PI_CODING_AGENT_DIR": str(root / "agent"), "PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_PROGRAM": str(program),
            "PI_WORK": str(root / "work"), "PYTHONPATH": os.environ.get("PYTHONPATH", ""), "PYTHONDONTWRITEBYTECODE": "1",
        }
        try:
            status = subprocess.run(COMMAND, env=env, cwd=root / "work", timeout=LIMIT, check=False).returncode
        except subprocess.TimeoutExpired:
            end(program)
            sys.exit(f"FAILED: the client did not end within {LIMIT} s: {COMMAND}")
        if status:
            end(program)
            sys.exit(f"FAILED: the client ended with {status}: {COMMAND}")
        for _ in range(300):
            if not left_over(program):
                break
            time.sleep(0.1)
        else:
            end(program)
            sys.exit(f"FAILED: our program still runs after its client has ended: {COMMAND}")
        told = [json.dumps(request["body"], ensure_ascii=False) for request in mock.requests]
        for number, text in enumerate(TOLD[:max(4, len(told))]):
            if len(told) <= number or text not in told[number]:
                sys.exit(f"FAILED: the model was not told {text!r} in request {number + 1} of {len(told)}: {COMMAND}")
        if len(told) not in (4, 7):
            sys.exit(f"FAILED: {len(told)} requests to the model: {COMMAND}")
    mock.stop()


main()
