#!/usr/bin/env python3
"""The smallest useful extension: nothing is written to files whose name ends in .lock."""
import json
import sys


def say(**line):
    print(json.dumps(line), flush=True)


for text in sys.stdin:
    line = json.loads(text)
    if line["type"] == "hello":
        say(type="ready", protocol=1)
    elif line["type"] == "open":
        say(type="result", id=line["id"], value={"extensions": [{"events": ["tool_call"]}]})
    elif line["type"] == "event" and line["name"] == "tool_call":
        path = line["event"]["input"].get("path", "")
        blocks = line["event"]["toolName"] in ("write", "edit") and path.endswith(".lock")
        say(type="result", id=line["id"], value={"block": True, "reason": "lock files are generated"} if blocks else None)
    elif line["type"] == "ping":
        say(type="pong", id=line["id"])
