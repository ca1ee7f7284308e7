"""Events as they come, and what a prompt led to."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional

from .errors import Lagged, RunFailed, TimedOut

if TYPE_CHECKING:
    from .client import AsyncSession

#: Events that may wait to be taken.
MAX_WAITING = 1 << 16

Event = dict[str, Any]


class AsyncEvents:
    """Events of a session (all of them, or with `None` those of every session), until `close` or the agent's end."""

    def __init__(self, idle_timeout: Optional[float] = None) -> None:
        self.idle_timeout = idle_timeout
        self._waiting: deque[Event] = deque()
        self._wake = asyncio.Event()
        self._error: Optional[Exception] = None
        self._closed = False

    def __aiter__(self) -> AsyncEvents:
        return self

    async def __anext__(self) -> Event:
        event = await self.next()
        if event is None:
            raise StopAsyncIteration
        return event

    async def next(self, timeout: Optional[float] = None) -> Optional[Event]:
        """The next event; None after `close`. What came before an error is given out before it is raised."""
        limit = self.idle_timeout if timeout is None else timeout
        while not self._waiting:
            if self._error is not None:
                raise self._error
            if self._closed:
                return None
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), limit)
            except asyncio.TimeoutError:
                raise TimedOut(f"no event for {limit:g} s") from None
        return self._waiting.popleft()

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    @property
    def closed(self) -> bool:
        return self._closed

    def _put(self, event: Event) -> None:
        if self._closed or self._error is not None:
            return
        if len(self._waiting) >= MAX_WAITING:
            self._fail(Lagged(f"{MAX_WAITING} events are waiting to be taken"))
            return
        self._waiting.append(event)
        self._wake.set()

    def _fail(self, error: Exception) -> None:
        if self._error is None:
            self._error = error
        self._wake.set()


@dataclass
class RunResult:
    """How a run ended."""

    #: Text of the last answer.
    text: str = ""
    #: Messages that came into being, in order.
    messages: list[dict[str, Any]] = field(default_factory=list)
    #: Why the last answer ended: `stop`, `length`, `toolUse`, `error` or `aborted`; None when there was none.
    stop_reason: Optional[str] = None
    #: The provider's words for a failure.
    error: Optional[str] = None
    aborted: bool = False
    #: The value that fits the `output_schema` of the prompt.
    result: Any = None
    #: Why there is no result although the prompt had an `output_schema`.
    result_error: Optional[str] = None
    _has_result: bool = field(default=False, repr=False)

    def _see(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "agent_settled":
            self.aborted = bool(event.get("aborted"))
        elif kind == "agent_end" and not event.get("willRetry"):
            if "result" in event:
                self.result, self._has_result = event["result"], True
            self.result_error = event.get("resultError")
        elif kind == "message_end":
            message = event["message"]
            self.messages.append(message)
            if message.get("role") == "assistant":
                self.text = "".join(block["text"] for block in message["content"] if block.get("type") == "text")
                self.stop_reason = message.get("stopReason")
                self.error = (message.get("errorMessage") or "the answer failed") if self.stop_reason == "error" else None
                self.aborted = self.stop_reason == "aborted"

    def raise_for_error(self) -> RunResult:
        """Raises `RunFailed` when the last answer failed or was aborted."""
        if self.error is not None or self.aborted:
            raise RunFailed(self)
        return self

    def raise_for_result(self) -> RunResult:
        """Raises `RunFailed` when the run gave no result that fits the `output_schema` of its prompt."""
        if not self._has_result:
            raise RunFailed(self)
        return self


class AsyncRun:
    """What follows a prompt, until nothing more happens by itself. Iterate over it for events, over `text()` for text."""

    def __init__(self, session: AsyncSession, events: AsyncEvents, disposition: str) -> None:
        #: `started`, `queued` (it joined the run under way) or `handled` (no model was asked).
        self.disposition = disposition
        self._session = session
        self._events = events
        self._result = RunResult()
        self._done = disposition == "handled"
        if self._done:
            session._unsubscribe(events)

    def __aiter__(self) -> AsyncRun:
        return self

    async def __anext__(self) -> Event:
        if self._done:
            raise StopAsyncIteration
        event = await self._events.next()
        if event is None:
            self._done = True
            raise StopAsyncIteration
        self._result._see(event)
        if event.get("type") == "agent_settled":
            self._done = True
            self.close()
        return event

    async def text(self) -> AsyncIterator[str]:
        """The answer's text, piece by piece."""
        async for event in self:
            if event.get("type") == "message_update":
                step = event["assistantMessageEvent"]
                if step.get("type") == "text_delta":
                    yield step["delta"]

    async def result(self) -> RunResult:
        """Waits for the end. Does not raise when the model failed; see `RunResult.raise_for_error`."""
        async for _ in self:
            pass
        return self._result

    async def abort(self) -> None:
        """Ends the run."""
        await self._session.abort()

    def close(self) -> None:
        """Stops listening. The run itself goes on."""
        self._session._unsubscribe(self._events)
        self._events.close()
