#!/usr/bin/env python3
"""An extension for the soak: a tool that answers, and one that ends the process."""
import json
import os
import sys

PARAMETERS = {"type": "object", "properties": {}}
TOOLS = [
    {"name": name, "label": name, "description": name, "parameters": PARAMETERS} for name in ("note", "crash_extension")
]


def say(**line):
    print(json.dumps(line), flush=True)


for text in sys.stdin:
    line = json.loads(text)
    if line["type"] == "hello":
        say(type="ready", protocol=1)
    elif line["type"] == "open":
        say(type="result", id=line["id"], value={"extensions": [{"tools": TOOLS, "events": ["tool_call"]}]})
    elif line["type"] == "call":
        if line["params"].get("name") == "crash_extension":
            os._exit(1)
        say(type="result", id=line["id"], value={"content": [{"type": "text", "text": "noted"}]})
    elif line["type"] in ("event", "close") and "id" in line:
        say(type="result", id=line["id"], value=None)
    elif line["type"] == "ping":
        say(type="pong", id=line["id"])
