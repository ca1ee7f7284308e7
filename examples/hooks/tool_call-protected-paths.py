#!/usr/bin/env python3
"""Keeps files from being written or edited. Links are followed, so that none leads around it."""
import json
import os
import sys

PROTECTED = [".env", ".git", "node_modules"]

told = json.load(sys.stdin)
event = told["event"]
path = event["input"].get("path")
if event["toolName"] in ("write", "edit") and isinstance(path, str):
    given = os.path.join(told["session"]["cwd"], os.path.expanduser(path))
    parts = set(os.path.normpath(given).split(os.sep)) | set(os.path.realpath(given).split(os.sep))
    for name in PROTECTED:
        if name in parts:
            print(json.dumps({"block": True, "reason": f"{path} is protected ({name})"}))
            break
