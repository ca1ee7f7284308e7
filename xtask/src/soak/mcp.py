"""An MCP server for the soak: a tool that answers, and one that ends the process."""
import json
import os
import sys

SCHEMA = {"type": "object", "properties": {}}
TOOLS = [{"name": name, "description": name, "inputSchema": SCHEMA} for name in ("echo", "crash")]

for text in sys.stdin:
    line = json.loads(text)
    method, result = line.get("method"), {}
    if method == "initialize":
        version = line["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "soak", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        if line["params"]["name"] == "crash":
            os._exit(1)
        result = {"content": [{"type": "text", "text": "said"}]}
    if "id" in line and method:
        print(json.dumps({"jsonrpc": "2.0", "id": line["id"], "result": result}), flush=True)
