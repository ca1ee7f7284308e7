"""Tools that the host gives to the agent: the decorator that makes them of functions, and the calls that come in."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import threading
import typing
from concurrent.futures import Executor
from typing import Any, Callable, Optional, Union

from .process import Sender
from .schemas import schema_of_type

_UPDATE_LIMIT = 30.0


class ToolCall:
    """A call under way. A function that takes a parameter of this type gets it there."""

    def __init__(self, frame: dict[str, Any], send: Sender, loop: asyncio.AbstractEventLoop) -> None:
        self.id: str = frame["id"]
        #: The model's id of the call, as in `tool_execution_start`.
        self.tool_call_id: str = frame.get("toolCallId", "")
        self.name: str = frame.get("toolName", "")
        self.arguments: dict[str, Any] = frame.get("arguments") or {}
        #: Handle of the session that calls; absent for the first.
        self.session: Optional[str] = frame.get("session")
        #: Set when the agent no longer wants the result. Functions that take long should look.
        self.cancelled = threading.Event()
        self._send = send
        self._loop = loop

    def update(self, content: Any) -> None:
        """Tells how far the tool has come. What is given replaces what was given before."""
        frame = self._frame("host_tool_update", partialResult=result_of(content))
        writing = asyncio.run_coroutine_threadsafe(self._send(frame), self._loop)
        try:
            inside = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            inside = False
        if not inside:
            writing.result(_UPDATE_LIMIT)

    def _frame(self, kind: str, **fields: Any) -> dict[str, Any]:
        frame: dict[str, Any] = {"type": kind, "id": self.id, **fields}
        if self.session is not None:
            frame["session"] = self.session
        return frame


class Tool:
    """A function with what the model is told of it."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: Optional[str] = None,
        description: Optional[str] = None,
        parameters: Optional[dict[str, Any]] = None,
        label: Optional[str] = None,
        hidden: bool = False,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = name or function.__name__
        self.description = description or inspect.getdoc(function) or ""
        if not self.description:
            raise ValueError(f"tool {self.name} needs a description: a docstring will do")
        schema, self._call_parameter = schema_of(function)
        self.parameters = parameters or schema
        self.label = label
        self.hidden = hidden

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def definition(self) -> dict[str, Any]:
        """What `set_host_tools` is told."""
        out: dict[str, Any] = {"name": self.name, "description": self.description, "parameters": self.parameters}
        if self.label:
            out["label"] = self.label
        if self.hidden:
            out["hidden"] = True
        return out

    async def run(self, call: ToolCall, executor: Executor) -> Any:
        arguments = dict(call.arguments)
        if self._call_parameter:
            arguments[self._call_parameter] = call
        if inspect.iscoroutinefunction(self.function):
            return await self.function(**arguments)
        work = functools.partial(self.function, **arguments)
        result = await asyncio.get_running_loop().run_in_executor(executor, work)
        return await result if inspect.isawaitable(result) else result


def tool(function: Optional[Callable[..., Any]] = None, **options: Any) -> Any:
    """Makes a tool of a function: `@tool`, or `@tool(name=..., parameters=...)`.

    Name, description and parameters come from the function's name, docstring and annotations;
    `Annotated[str, "..."]` describes a parameter. Plain functions run in a thread, coroutines in the loop.
    Whatever is raised becomes an error that the model sees.
    """
    if function is None:
        return lambda function: Tool(function, **options)
    return Tool(function, **options)


def as_tool(item: Union[Tool, Callable[..., Any]]) -> Tool:
    return item if isinstance(item, Tool) else Tool(item)


def schema_of(function: Callable[..., Any]) -> tuple[dict[str, Any], Optional[str]]:
    """JSON Schema of the parameters, and the name of the one that takes the `ToolCall`."""
    hints = typing.get_type_hints(function, include_extras=True)
    properties: dict[str, Any] = {}
    required: list[str] = []
    call_parameter = None
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        hint = hints.get(name, Any)
        if hint is ToolCall:
            call_parameter = name
            continue
        properties[name] = _schema(hint)
        if parameter.default is parameter.empty:
            required.append(name)
        elif parameter.default is not None:
            properties[name].setdefault("default", parameter.default)
    return {"type": "object", "properties": properties, "required": required}, call_parameter


def _schema(hint: Any) -> dict[str, Any]:
    """Models leave out what may be None; they need not be told that they may say null."""
    if typing.get_origin(hint) is typing.Annotated:
        inner, *words = typing.get_args(hint)
        descriptions = [word for word in words if isinstance(word, str)]
        return {**_schema(inner), **({"description": descriptions[0]} if descriptions else {})}
    schema = schema_of_type(hint)
    options = [option for option in schema.get("anyOf", []) if option != {"type": "null"}]
    if not options:
        return schema
    return options[0] if len(options) == 1 else {"anyOf": options}


def result_of(value: Any) -> dict[str, Any]:
    """What a function returned as the result of a tool: a string, blocks, a whole result, or anything that JSON can say."""
    if isinstance(value, dict) and isinstance(value.get("content"), list):
        return value
    if isinstance(value, list) and value and all(isinstance(item, dict) and "type" in item for item in value):
        return {"content": value}
    if value is None:
        return {"content": []}
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return {"content": [{"type": "text", "text": text}]}


class ToolHost:
    """The tools of all sessions and the calls that are under way."""

    def __init__(self, send: Sender, executor: Executor) -> None:
        self._send = send
        self._executor = executor
        self._tools: dict[Optional[str], dict[str, Tool]] = {}
        self._calls: dict[str, tuple[ToolCall, asyncio.Task[None]]] = {}

    def replace(self, session: Optional[str], tools: list[Tool]) -> None:
        self._tools[session] = {tool.name: tool for tool in tools}

    def of(self, session: Optional[str]) -> list[Tool]:
        return list(self._tools.get(session, {}).values())

    def forget(self, session: Optional[str]) -> None:
        self._tools.pop(session, None)

    def called(self, frame: dict[str, Any]) -> None:
        """Answers a `host_tool_call` when the function is done."""
        call = ToolCall(frame, self._send, asyncio.get_running_loop())
        # The tool as it is now: replacing the set does not touch calls under way.
        tool = self._tools.get(call.session, {}).get(call.name)
        task = asyncio.ensure_future(self._answer(call, tool))
        self._calls[call.id] = (call, task)
        task.add_done_callback(lambda _: self._calls.pop(call.id, None))

    def cancelled(self, target: str) -> None:
        """Ends a call; nobody wants its result any more."""
        call, task = self._calls.pop(target, (None, None))
        if call is not None and task is not None:
            call.cancelled.set()
            task.cancel()

    def cancel_all(self) -> None:
        for target in list(self._calls):
            self.cancelled(target)

    async def _answer(self, call: ToolCall, tool: Optional[Tool]) -> None:
        try:
            if tool is None:
                raise LookupError(f"Tool {call.name} not found")
            result = result_of(await tool.run(call, self._executor))
            # Here, so that a result that JSON cannot express is an error, too. Without any result the run would not end.
            await self._send(call._frame("host_tool_result", result=result))
        except Exception as error:
            text = str(error) or type(error).__name__
            failure = {"content": [{"type": "text", "text": text}]}
            await self._send(call._frame("host_tool_result", result=failure, isError=True))
