"""A stand-in for the agent: the frames of host tools, dialogs and many sessions, and misbehaviour on request.

A prompt `call NAME JSON` calls a host tool, `cancel NAME JSON` takes the call back after its first update, `dialog JSON`
asks something, `flood N` sends N events, `silent` never settles, `die` ends the process, `orphan` starts a process that keeps
stderr open for a minute, `garbage` writes no JSON, `mute` does not answer at all. A set of tools with the tool `late` is
taken without an answer. The commands `deep`, `torn` and `odd` are answered with a deep line, half a line and odd frames.
"""

import functools
import itertools
import json
import subprocess
import sys

tools: dict = {}
waiting: dict = {}
to_cancel: set = set()
prompts = itertools.count(1)


def say(frame, session=None):
    if session is not None:
        frame["session"] = session
    sys.stdout.write(json.dumps(frame) + "\n")
    sys.stdout.flush()


def settle(text, session):
    message = {"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop"}
    say({"type": "message_end", "message": message}, session)
    say({"type": "agent_end", "messages": [message], "willRetry": False}, session)
    say({"type": "agent_settled", "aborted": False}, session)


def prompt(message, session):
    word, _, rest = message.partition(" ")
    count = next(prompts)
    say({"type": "agent_start"}, session)
    if word in ("call", "cancel"):
        name, _, arguments = rest.partition(" ")
        waiting[f"h{count}"] = session
        ids = {"id": f"h{count}", "toolCallId": f"t{count}"}
        say({"type": "host_tool_call", **ids, "toolName": name, "arguments": json.loads(arguments)}, session)
        if word == "cancel":
            to_cancel.add(f"h{count}")
    elif word == "dialog":
        waiting[f"d{count}"] = session
        say({"type": "extension_ui_request", "id": f"d{count}", **json.loads(rest)}, session)
    elif word == "flood":
        for number in range(int(rest)):
            say({"type": "notice", "level": "info", "message": str(number)}, session)
        settle("flooded", session)
    elif word == "die":
        sys.stderr.write("dying as asked\n")
        sys.exit(3)
    elif word == "orphan":
        subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        settle("left", session)
    elif word == "garbage":
        sys.stdout.write("this is not JSON\n")
        sys.stdout.flush()
    elif word != "silent":
        settle(f"{session or 'first'}: {message}", session)


def respond(frame, data=None, error=None):
    out = {"id": frame.get("id"), "type": "response", "command": frame.get("type"), "success": error is None}
    if error is not None:
        out["error"] = error
    elif data is not None:
        out["data"] = data
    say(out, frame.get("session"))


def main():
    for line in sys.stdin:
        frame = json.loads(line)
        kind, session = frame.get("type"), frame.get("session")

        answer = functools.partial(respond, frame)
        if kind == "get_state":
            answer({"sessionId": session or "first", "argv": sys.argv[1:]})
        elif kind == "prompt":
            if frame["message"] == "mute":
                continue
            answer({"disposition": "handled" if frame["message"].startswith("/") else "started"})
            if not frame["message"].startswith("/"):
                prompt(frame["message"], session)
        elif kind == "set_host_tools":
            names = [tool["name"] for tool in frame["tools"]]
            if len(set(names)) != len(names):
                answer(error="RPC host tool names must be unique")
            else:
                tools[session] = frame["tools"]
                if "late" not in names:
                    answer({"toolNames": names})
        elif kind == "get_tools":
            answer({"tools": tools.get(session, [])})
        elif kind == "host_tool_update":
            update = {"type": "tool_execution_update", "toolCallId": frame["id"], "partialResult": frame["partialResult"]}
            say(update, waiting.get(frame["id"]))
            if frame["id"] in to_cancel:
                say({"type": "host_tool_cancel", "id": "c1", "targetId": frame["id"]}, waiting[frame["id"]])
                settle("cancelled", waiting[frame["id"]])
        elif kind in ("host_tool_result", "extension_ui_response"):
            settle(json.dumps(frame, sort_keys=True), waiting.pop(frame["id"]))
        elif kind == "open_session":
            answer({"session": frame.get("session") or "s1", "sessionId": "x", "sessionFile": None, "cwd": frame.get("cwd") or "."})
        elif kind == "abort":
            answer()
            settle("aborted", session)
        elif kind == "close_session":
            answer()
        elif kind == "deep":
            depth = frame["depth"]
            tree = '[{"entry":{},"children":' * depth + "[]" + "}]" * depth
            sys.stdout.write(f'{{"id":"{frame["id"]}","type":"response","command":"deep","success":true,"data":{{"tree":{tree}}}}}\n')
            sys.stdout.flush()
        elif kind == "torn":
            sys.stdout.write(f'{{"id":"{frame["id"]}","type":"response","command":"torn","success":true,"data":{{"tree":[[[\n')
            sys.stdout.flush()
        elif kind == "odd":
            dialog = {"type": "extension_ui_request", "method": 7, "id": []}
            frames: tuple = ({"type": ["x"]}, dialog, {"type": "host_tool_call"}, {"session": {}})
            for odd in frames:
                say(odd)
            say({"type": "response", "id": {"a": 1}, "success": 7})
            answer()
        else:
            answer(error=f"Unknown command: {kind}")


main()
