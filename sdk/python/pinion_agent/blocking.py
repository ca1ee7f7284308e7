"""The blocking client: the asyncio client in a thread of its own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine, Iterable, Iterator
from typing import Any, Callable, Optional, TypeVar, Union, overload

from .client import AsyncAgent, AsyncSession
from .commands import BlockingCommands
from .run import AsyncEvents, AsyncRun, Event, RunResult
from .tools import Tool

T = TypeVar("T")


#: Seconds in which calls of other threads end by themselves once the agent is closed.
_LAST_CALLS = 2.0


class _Thread:
    """An event loop in a thread. Every wait inside has a limit, so waiting for it needs none."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        #: True from the call of `stop` on.
        self.stopping = False
        # Reentrant: a signal handler may interrupt a call of its thread that holds it.
        self._lock = threading.RLock()
        self._thread = threading.Thread(target=self._run, name="pinion-loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.loop.run_forever()
        # Otherwise a call of another thread that has begun would never return.
        self.loop.run_until_complete(self._finish())

    async def _finish(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            _, late = await asyncio.wait(others, timeout=_LAST_CALLS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        # After `stop` the loop takes no more calls.
        with self._lock:
            if self.stopping or threading.current_thread() is self._thread:
                work.close()
                raise RuntimeError("the agent is closed, or this is its own thread")
            future: concurrent.futures.Future[T] = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C: the wait inside ends, too.
            raise

    def soon(self, act: Callable[[], None]) -> None:
        # After `stop` nothing listens any more.
        with self._lock:
            if not self.stopping:
                self.loop.call_soon_threadsafe(act)

    def stop(self) -> None:
        with self._lock:
            if not self.stopping:
                self.stopping = True
                self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5.0)
        if not self._thread.is_alive() and not self.loop.is_closed():
            self.loop.close()


class Events:
    """Events of a session as an iterator."""

    def __init__(self, thread: _Thread, events: AsyncEvents) -> None:
        self._thread = thread
        self._events = events

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        event = self.next()
        if event is None:
            raise StopIteration
        return event

    def next(self, timeout: Optional[float] = None) -> Optional[Event]:
        """The next event; None after `close`."""
        return self._thread.wait(self._events.next(timeout))

    def close(self) -> None:
        self._thread.soon(self._events.close)


class Run:
    """What follows a prompt, until nothing more happens by itself. Iterate over it for events, over `text()` for text."""

    def __init__(self, thread: _Thread, run: AsyncRun) -> None:
        self._thread = thread
        self._run = run
        #: `started`, `queued` (it joined the run under way) or `handled` (no model was asked).
        self.disposition = run.disposition

    def __iter__(self) -> Iterator[Event]:
        while True:
            event = self._thread.wait(self._next())
            if event is None:
                return
            yield event

    def text(self) -> Iterator[str]:
        """The answer's text, piece by piece."""
        for event in self:
            if event.get("type") == "message_update":
                step = event["assistantMessageEvent"]
                if step.get("type") == "text_delta":
                    yield step["delta"]

    def result(self) -> RunResult:
        """Waits for the end. Does not raise when the model failed; see `RunResult.raise_for_error`."""
        return self._thread.wait(self._run.result())

    def abort(self) -> None:
        """Ends the run."""
        self._thread.wait(self._run.abort())

    def close(self) -> None:
        """Stops listening. The run itself goes on."""
        self._thread.soon(self._run.close)

    async def _next(self) -> Optional[Event]:
        try:
            return await self._run.__anext__()
        except StopAsyncIteration:
            return None


class Session(BlockingCommands):
    """A session of the agent. `handle` is None for the first one."""

    def __init__(self, thread: _Thread, inner: AsyncSession) -> None:
        self._thread = thread
        self._inner = inner

    @property
    def handle(self) -> Optional[str]:
        return self._inner.handle

    def call(self, command: str, params: Optional[dict[str, Any]] = None, timeout: Optional[float] = None) -> Any:
        """Sends any command and gives what it answers. Parameters that are None are left out."""
        return self._thread.wait(self._inner.call(command, params, timeout))

    def run(self, message: str, **options: Any) -> Run:
        """Prompts and gives what follows; options as in `AsyncSession.run`."""
        return Run(self._thread, self._thread.wait(self._inner.run(message, **options)))

    def ask(self, message: str, **options: Any) -> str:
        """Prompts and gives the text of the last answer; options and errors as in `AsyncSession.ask`."""
        return self._thread.wait(self._inner.ask(message, **options))

    @overload
    def ask_json(self, message: str, schema: type[T], **options: Any) -> T: ...

    @overload
    def ask_json(self, message: str, schema: dict[str, Any], **options: Any) -> Any: ...

    def ask_json(self, message: str, schema: Any, **options: Any) -> Any:
        """Prompts and gives a value of the type or of the JSON Schema; options and errors as in `AsyncSession.ask_json`."""
        return self._thread.wait(self._inner.ask_json(message, schema, **options))

    def events(self, *, idle_timeout: Optional[float] = None) -> Events:
        """All events of this session from now on. Call `close` when done."""

        async def listen() -> AsyncEvents:
            return self._inner.events(idle_timeout=idle_timeout)

        return Events(self._thread, self._thread.wait(listen()))

    def set_tools(self, tools: Iterable[Union[Tool, Callable[..., Any]]]) -> list[str]:
        """Gives the session these tools in place of those it was given before."""
        return self._thread.wait(self._inner.set_tools(tools))

    def close(self) -> None:
        """Closes the session; the agent goes on."""
        self._thread.wait(self._inner.close())

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Agent(Session):
    """A running agent, and its first session. Options as in `AsyncAgent`.

        with Agent(model="anthropic/claude-sonnet-4-5") as agent:
            print(agent.ask("What does this project do?"))

    Tools and callbacks run in threads of their own and may use the agent.
    """

    def __init__(self, **options: Any) -> None:
        thread = _Thread()

        async def make() -> AsyncAgent:
            return AsyncAgent(**options)

        try:
            super().__init__(thread, thread.wait(make()))
        except BaseException:
            thread.stop()
            raise

    def start(self) -> Agent:
        """Starts the agent and waits until it answers."""
        self._thread.wait(self._agent.start())
        return self

    def close(self) -> None:
        """Ends the agent in bounded time. Safe to call twice."""
        if not self._thread.stopping:
            self._thread.wait(self._agent.close())
            self._thread.stop()

    def __enter__(self) -> Agent:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def open_session(  # type: ignore[override] # a session in place of its description
        self,
        session: Optional[str] = None,
        session_path: Optional[str] = None,
        cwd: Optional[str] = None,
        *,
        timeout: Optional[float] = None,
    ) -> Session:
        """Opens another session in this process, in a working directory of its own. Needs an agent with many sessions."""
        work = self._agent.open_session(session, session_path, cwd, timeout=timeout)
        return Session(self._thread, self._thread.wait(work))

    def close_session(  # type: ignore[override] # the handle says which session
        self, session: str, *, timeout: Optional[float] = None
    ) -> None:
        """Closes a session by its handle."""
        self._thread.wait(self._agent.close_session(session, timeout=timeout))

    @property
    def returncode(self) -> Optional[int]:
        """Exit code of the agent, once it has ended."""
        return self._agent.returncode

    @property
    def stderr(self) -> str:
        """The end of what the agent wrote to stderr."""
        return self._agent.stderr

    @property
    def _agent(self) -> AsyncAgent:
        inner = self._inner
        assert isinstance(inner, AsyncAgent)
        return inner
