"""An extension in Python: no package, no library, only lines of JSON (docs/reference/extension-protocol.md).

It brings a tool that reports progress, can be cancelled and asks the user a question, and a slash command.
The main thread reads lines; whatever takes time runs in a thread of its own, so that a ping or a cancel is
always answered.
"""

import itertools
import json
import sys
import threading

COUNTDOWN = {
    "name": "release",
    "label": "Release",
    "description": "Releases a version of the project after a countdown, if the user agrees.",
    "promptSnippet": "Release a version of the project",
    "parameters": {
        "type": "object",
        "properties": {
            "version": {"type": "string"},
            "steps": {"type": "integer", "description": "Length of the countdown"},
        },
        "required": ["version"],
    },
}

writing = threading.Lock()
cancelled: dict[int, threading.Event] = {}  # id of the agent's call -> Event
answers: dict[int, tuple[threading.Event, list]] = {}  # id of our call -> (Event, [value])
call_ids = itertools.count(1)


def say(**line):
    """Writes one line. Nothing else may go to standard output."""
    with writing:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def call(session, method, params, cancel=None):
    """Asks the agent for something and waits for the answer; None when it is cancelled or refused."""
    own = next(call_ids)
    done, value = answers.setdefault(own, (threading.Event(), []))
    say(type="call", session=session, id=own, method=method, params=params)
    while not done.wait(0.05):
        if cancel is not None and cancel.is_set():
            say(type="cancel", id=own)
            break
    answers.pop(own, None)
    return value[0] if value else None


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def release(line, cancel):
    args, session = line["params"]["args"], line["session"]
    question = {"title": "Release?", "message": f"Release version {args['version']}?"}
    if call(session, "ui.confirm", question, cancel) is not True:
        return {**text("The user does not want a release."), "isError": True}
    for left in range(args.get("steps", 3), 0, -1):
        say(type="update", id=line["id"], value=text(f"{left} ..."))
        if cancel.wait(0.1):
            return {**text("The release was cancelled."), "isError": True}
    return {**text(f"Version {args['version']} is out."), "details": {"version": args["version"]}}


def hello(line, _cancel):
    greeting = f"Hello {line['params']['args'] or 'you'}"
    say(type="call", session=line["session"], method="ui.notify", params={"message": greeting})


def work(task, line):
    cancel = cancelled[line["id"]] = threading.Event()
    try:
        say(type="result", id=line["id"], value=task(line, cancel))
    except Exception as error:  # whatever it is, the agent gets an answer
        say(type="error", id=line["id"], message=str(error))
    finally:
        cancelled.pop(line["id"], None)


def take(line):
    """Deals with one line. Types that are not named here (state, entries, abort, ...) can be ignored."""
    kind = line.get("type")
    if kind == "hello":
        say(type="ready", protocol=1)
    elif kind == "open":
        commands = [{"name": "hello", "description": "Says hello"}]
        mine = {"tools": [COUNTDOWN], "commands": commands, "events": []}
        say(type="result", id=line["id"], value={"extensions": [mine]})
    elif kind == "ping":
        say(type="pong", id=line["id"])
    elif kind == "call":
        task = {"tool.execute": release, "command.run": hello}.get(line["method"])
        if task is None:
            say(type="error", id=line["id"], message=f"{line['method']} is not there")
        else:
            threading.Thread(target=work, args=(task, line), daemon=True).start()
    elif kind == "cancel" and line["id"] in cancelled:
        cancelled[line["id"]].set()
    elif kind in ("result", "error") and line["id"] in answers:
        done, value = answers[line["id"]]
        value.append(line.get("value"))
        done.set()
    elif kind == "close":
        say(type="result", id=line["id"], value=None)


for text_line in sys.stdin:
    take(json.loads(text_line))
