#!/usr/bin/env python3
"""acplint (PyPI), unmodified, in front of our program: acplint.py PROGRAM WORK_FOLDER

All tests must pass but for three that cannot here. One looks for the update `agentMessageChunk`; the protocol, whose schema acplint
checks as well, calls it `agent_message_chunk`. The others want the result of a login in the browser within 30 seconds.
"""
import json
import os
import pathlib
import subprocess
import sys

PROGRAM, WORK = sys.argv[1:3]
work = pathlib.Path(WORK)
cwd, home, report = work / "cwd", work / "home", work / "report.json"
for folder in (cwd, home):
    folder.mkdir(parents=True, exist_ok=True)
env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
command = [sys.executable, "-c", "from acplint.cli import main; raise SystemExit(main())", "--agent", PROGRAM]
command += ["--agent-args=acp --model offline/echo", "--cwd", str(cwd), "--output", "json", "--output-file", str(report)]
done = subprocess.run(command, check=False, env=env, cwd=cwd, text=True, capture_output=True, timeout=280)
if not report.exists():
    sys.exit(f"acplint: no report:\n{done.stdout}\n{done.stderr}")
results = json.loads(report.read_text())
tests = results["results"]
failed = {test["name"]: test.get("message", "") for test in tests if test["status"].lower() not in ("pass", "skip")}
KNOWN = {"agent_message_chunk_received", "authenticate_openai-codex", "authenticate_github-copilot"}
wrong = {name: why for name, why in failed.items() if name not in KNOWN}
if wrong or len(tests) < 40:
    sys.exit(f"acplint: {len(tests)} tests, failed: {json.dumps(wrong, indent=1)}")
print(f"ok: acplint: {len(tests) - len(failed)} of {len(tests)} tests, {len(failed)} known")
