"""JSON of any depth: a session is a chain of entries, and `get_tree` nests each of them in the one before."""

from __future__ import annotations

import gc
import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Callable, Optional, Union

_SPACE = re.compile(r"[ \t\n\r]*").match
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?").match
_WORDS = {"true": True, "false": False, "null": None, "NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_WORD = re.compile("|".join(_WORDS)).match
#: The id of a command of this client, as it stands in a response.
_ID = re.compile(rb'"id"\s*:\s*"(py[0-9]+)"').search
#: Where the id of a response is looked for, in bytes from either end of the line.
ENDS = 4096
#: Length of a line for which the search for garbage pauses, in bytes.
_LARGE = 1 << 20
#: The built-in decoder, and how often it may fail in one line before it is not tried any more.
_shallow: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined] # undocumented
_FAILURES = 16


def decode(line: bytes) -> Any:
    """The value of a line. Raises `ValueError` when it is not JSON."""
    # Nothing of a value that is being made is garbage; looking for it takes longer than the rest.
    pauses = len(line) > _LARGE and gc.isenabled()
    if pauses:
        gc.disable()
    try:
        return json.loads(line)
    except RecursionError:
        return _decode_deep(line.decode("utf-8", "surrogatepass"))
    finally:
        if pauses:
            gc.enable()


def response_id(line: bytes) -> Optional[str]:
    """The id of the command that a line answers which cannot be decoded, if it can be found."""
    if b'"response"' not in line[:ENDS] and b'"response"' not in line[-ENDS:]:
        return None
    found = _ID(line[:ENDS]) or _ID(line[-ENDS:])
    return found.group(1).decode("ascii") if found else None


def _decode_deep(text: str) -> Any:
    """The same values as `json.loads`, with a list of open containers in place of recursion. What is shallow is left to the
    built-in decoder, which is far faster: the values of all members but those under whose names it failed once."""
    #: Each open container with the name of the member that is being read, or its own name when it is a list.
    open_ones: list[tuple[Union[list[Any], dict[str, Any]], str]] = []
    deep_names = {""}
    name = ""
    at = _SPACE(text, 0).end()  # type: ignore[union-attr]
    while True:
        # A value begins here.
        value: Any
        start = text[at : at + 1]
        if start in ("{", "[") and name not in deep_names and len(deep_names) < _FAILURES:
            try:
                value, at = _shallow(text, at)
            except StopIteration as problem:
                raise json.JSONDecodeError("Expecting value", text, problem.value) from None
            except RecursionError:
                deep_names.add(name)
                continue
        elif start == "{":
            at = _SPACE(text, at + 1).end()  # type: ignore[union-attr]
            if text[at : at + 1] != "}":
                name, at = _name(text, at)
                open_ones.append(({}, name))
                continue
            value = {}
            at += 1
        elif start == "[":
            at = _SPACE(text, at + 1).end()  # type: ignore[union-attr]
            if text[at : at + 1] != "]":
                open_ones.append(([], name))
                continue
            value = []
            at += 1
        else:
            value, at = _scalar(text, at)
        # It ends here, and perhaps the containers around it.
        while True:
            at = _SPACE(text, at).end()  # type: ignore[union-attr]
            if not open_ones:
                if at != len(text):
                    raise json.JSONDecodeError("Extra data", text, at)
                return value
            container, name = open_ones[-1]
            following = text[at : at + 1]
            if isinstance(container, dict):
                container[name] = value
                if following == ",":
                    name, at = _name(text, _SPACE(text, at + 1).end())  # type: ignore[union-attr]
                    open_ones[-1] = (container, name)
                    break
            else:
                container.append(value)
                if following == ",":
                    at = _SPACE(text, at + 1).end()  # type: ignore[union-attr]
                    break
            if following != ("}" if isinstance(container, dict) else "]"):
                raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
            open_ones.pop()
            value = container
            at += 1


def _name(text: str, at: int) -> tuple[str, int]:
    """The name of a member and where its value begins."""
    if text[at : at + 1] != '"':
        raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
    name, at = scanstring(text, at + 1, True)
    at = _SPACE(text, at).end()  # type: ignore[union-attr]
    if text[at : at + 1] != ":":
        raise json.JSONDecodeError("Expecting ':' delimiter", text, at)
    return name, _SPACE(text, at + 1).end()  # type: ignore[union-attr]


def _scalar(text: str, at: int) -> tuple[Any, int]:
    """A value that contains no others, and where it ends."""
    if text[at : at + 1] == '"':
        string, end = scanstring(text, at + 1, True)
        return string, end
    number = _NUMBER(text, at)
    if number:
        whole, fraction, exponent = number.groups()
        exact = fraction is None and exponent is None
        return (int(whole) if exact else float(number.group())), number.end()
    word = _WORD(text, at)
    if word:
        return _WORDS[word.group()], word.end()
    raise json.JSONDecodeError("Expecting value", text, at)
