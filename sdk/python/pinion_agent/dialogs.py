"""Questions of the agent and of extensions to the user. Nothing waits for ever: without a callback they are cancelled at once."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Union

from .process import Sender

#: Methods that want an answer; the others only tell something.
ASKING = ("select", "confirm", "input", "editor")
#: What the agent is told that we understand; what only tells something comes as an event.
RENDERED = [*ASKING, "cancel", "notify", "setStatus", "setWidget", "setTitle", "set_editor_text", "open_url"]


@dataclass
class Dialog:
    """A question. `method` is `select`, `confirm`, `input` or `editor`."""

    id: str
    method: str
    title: str = ""
    message: str = ""
    options: list[Any] = field(default_factory=list)
    placeholder: str = ""
    prefill: str = ""
    #: Milliseconds after which the agent no longer waits.
    timeout: Optional[float] = None
    #: Handle of the session that asks; absent for the first.
    session: Optional[str] = None
    #: The whole line.
    frame: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Denial:
    """Denies the call of a permission dialog. The model receives the reason."""

    reason: str = ""


Answer = Union[str, bool, Denial, None]
#: Gets a question and gives the answer: the chosen option or text, True or False for `confirm`, a `Denial`, None to cancel.
DialogHandler = Callable[[Dialog], Union[Answer, Awaitable[Answer]]]


class DialogHost:
    """The dialogs that are open."""

    def __init__(self, send: Sender, executor: Executor, handler: Optional[DialogHandler], limit: float) -> None:
        self._send = send
        self._executor = executor
        self._handler = handler
        self._limit = limit
        self._open: dict[str, asyncio.Task[None]] = {}

    def requested(self, frame: dict[str, Any]) -> None:
        method = frame.get("method")
        if method == "cancel":
            task = self._open.pop(str(frame.get("targetId")), None)
            if task is not None:
                task.cancel()
        elif method in ASKING:
            known = {name: frame[name] for name in Dialog.__dataclass_fields__ if frame.get(name) is not None and name != "frame"}
            dialog = Dialog(frame=frame, **known)
            task = asyncio.ensure_future(self._answer(dialog))
            self._open[dialog.id] = task
            task.add_done_callback(lambda _: self._open.pop(dialog.id, None))

    def cancel_all(self) -> None:
        for task in list(self._open.values()):
            task.cancel()

    async def _answer(self, dialog: Dialog) -> None:
        frame: dict[str, Any] = {"type": "extension_ui_response", "id": dialog.id}
        if dialog.session is not None:
            frame["session"] = dialog.session
        limit = self._limit if dialog.timeout is None else min(self._limit, dialog.timeout / 1000 or self._limit)
        try:
            answer = await asyncio.wait_for(self._ask(dialog), limit)
        except asyncio.TimeoutError:
            frame.update(cancelled=True, timedOut=True)
        except Exception:
            frame["cancelled"] = True
        else:
            if answer is None:
                frame["cancelled"] = True
            elif isinstance(answer, Denial):
                # `cancelled` denies in every language of the options.
                frame["cancelled"] = True
                if answer.reason:
                    frame["reason"] = answer.reason
            elif dialog.method == "confirm":
                frame["confirmed"] = bool(answer)
            else:
                frame["value"] = str(answer)
        await self._send(frame)

    async def _ask(self, dialog: Dialog) -> Answer:
        if self._handler is None:
            return None
        answer: Any
        if inspect.iscoroutinefunction(self._handler):
            answer = self._handler(dialog)
        else:
            answer = await asyncio.get_running_loop().run_in_executor(self._executor, self._handler, dialog)
        # A lambda may return a coroutine, too. Taken as the answer it would be true, and confirm a permission.
        result: Answer = await answer if inspect.isawaitable(answer) else answer
        return result
