#!/usr/bin/env python3
"""acpx (npm, 0.19.1), unmodified, in front of our program: acpx.py FOLDER_OF_NODE_MODULES PROGRAM WORK_FOLDER

A session, a prompt, permissions given and refused, a cancelled prompt, the list of sessions. acpx starts a process of ours for
each step and loads the session into it, so each step shows a resumed session, too.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

MODULES, PROGRAM, WORK = sys.argv[1:4]
work = pathlib.Path(WORK)
cwd, home = work / "cwd", work / "home"
for folder in (cwd, home):
    folder.mkdir(parents=True, exist_ok=True)
script = work / "replies.json"
AGENT = f"{PROGRAM} acp --model offline/script --script {script} --permission-mode ask"
ACPX = [shutil.which("node") or "node", f"{MODULES}/acpx/dist/cli.js", "--agent", AGENT, "--ttl", "1"]
ENV = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}


def start(*args):
    command = [*ACPX, *args]
    none, pipe = subprocess.DEVNULL, subprocess.PIPE
    return subprocess.Popen(command, cwd=cwd, env=ENV, text=True, stdin=none, stdout=pipe, stderr=subprocess.STDOUT)


def run(*args):
    return start(*args).communicate(timeout=60)[0]


def running():
    """Processes of acpx and ours that belong to this driver: the script is among their arguments or variables."""
    mark, found = str(script).encode(), []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            described = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if mark in described:
            found.append(process.name)
    return found


def replies(*list_of):
    """The answers of the next process: the old one ends when it has been idle for a second, and acpx with it."""
    for _ in range(100):
        if not running():
            break
        time.sleep(0.2)
    else:
        sys.exit("acpx: the process of the last step does not end")
    script.write_text(json.dumps([{"stream": stream} for stream in list_of]))


def check(what, holds, seen):
    if not holds:
        sys.exit(f"acpx: not as expected: {what}:\n{seen}")


def text(*pieces):
    return [{"text": list(pieces)}]


def bash(command):
    return [{"tool": {"name": "bash", "args": {"command": command}}}]


replies(text("First ", "answer."))
session = run("sessions", "new").split()[-1]
said = run("prompt", "One")
check("an answer", "First answer." in said and "end_turn" in said, said)
check("the new session is resumed", "session/resume" in said and "session/new" not in said, said)

replies(bash("echo side > made"), text("It ran."))
said = run("--approve-all", "prompt", "Two")
check("an approved call runs", "It ran." in said and (cwd / "made").exists(), said)

replies(bash("echo side > never"), text("It did not."))
said = run("--deny-all", "prompt", "Three")
check("a refused call does not run", "It did not." in said and not (cwd / "never").exists(), said)

# acpx prints a line when it is whole.
replies([{"text": ["Begun\n"]}, {"delay": 60}])
hanging = start("prompt", "Four")
heard: list[str] = []
reader = threading.Thread(target=lambda: heard.extend(iter(hanging.stdout.readline, "")), daemon=True)
reader.start()
# Before the prompt has reached the agent, acpx cancels only its own preparations.
for _ in range(150):
    time.sleep(0.2)
    if "Begun" in "".join(heard):
        break
else:
    sys.exit(f"acpx: the prompt does not begin:\n{''.join(heard)}")
cancelled = run("cancel")
hanging.wait(timeout=30)
reader.join(timeout=10)
said = "".join(heard)
check("a cancelled prompt ends", "cancel" in said.lower(), cancelled + said)

listed = run("sessions", "list")
check("the session is listed", session in listed, listed)
run("sessions", "close")
print("ok: acpx: prompt, permission, cancel, resume, list")
