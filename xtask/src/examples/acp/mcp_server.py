"""An MCP server over stdio. Its one tool asks the user for a name."""
import json
import sys

TOOL = {"name": "ask", "description": "Asks the user for a name", "inputSchema": {"type": "object"}}
FORM = {"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}, "required": ["name"]}


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


calls = []
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"name": "names", "version": "1.0.0"}
        send(id=number, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        send(id=number, result={"tools": [TOOL]})
    elif method == "tools/call":
        calls.append(number)
        send(id="form", method="elicitation/create", params={"message": "Who are you?", "requestedSchema": FORM})
    elif number == "form":
        name = message.get("result", {}).get("content", {}).get("name", "nobody")
        send(id=calls.pop(), result={"content": [{"type": "text", "text": f"The user is {name}."}]})
    elif method and number is not None:
        send(id=number, result={})
