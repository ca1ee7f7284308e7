"""Replies for tests: the agent plays them instead of asking a model. Everything else (tools, events, files) is real.

    Agent(script=[tool_call("bash", command="ls"), reply("Two files.")])
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from typing import Any, Union

Reply = dict[str, Any]


def reply(*chunks: str, thinking: str = "", delay: float = 0.0) -> Reply:
    """An answer; each chunk arrives as a delta of its own, `delay` seconds after the one before."""
    text: list[Any] = []
    for chunk in chunks:
        if delay:
            text.append({"delay": delay})
        text.append(chunk)
    stream: list[Any] = [{"thinking": thinking}] if thinking else []
    return {"stream": [*stream, {"text": text}]}


def tool_call(name: str, **arguments: Any) -> Reply:
    """An answer that calls one tool."""
    return tool_calls((name, arguments))


def tool_calls(*calls: Any) -> Reply:
    """An answer that calls several tools, given as `(name, arguments)`."""
    return {"stream": [{"tool": {"name": name, "args": arguments}} for name, arguments in calls]}


def failure(kind: str = "server", message: str = "") -> Reply:
    """The provider fails: `server`, `rate_limit`, `overloaded`, `context_overflow`, `too_large`, `auth` or `invalid`."""
    return {"error": {"kind": kind, **({"message": message} if message else {})}}


def when(wanted: str, answer: Reply) -> Reply:
    """The answer for requests that contain a text, however often they come."""
    return {**answer, "match": {"contains": wanted}, "repeat": True}


def write_script(replies: Sequence[Union[Reply, str]]) -> str:
    """Writes replies to a temporary file; plain strings are answers. The caller removes it."""
    handle, path = tempfile.mkstemp(prefix="pinion-script-", suffix=".json")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump([reply(item) if isinstance(item, str) else item for item in replies], file)
    return path
