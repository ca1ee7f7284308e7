"""The asyncio client: one agent process, its sessions, commands and answers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Optional, TypeVar, Union, overload

from .commands import AsyncCommands
from .dialogs import RENDERED, DialogHandler, DialogHost
from .errors import AgentExited, CommandError, PinionError, ProtocolError, StartError, TimedOut
from .process import Process
from .run import AsyncEvents, AsyncRun, RunResult
from .schemas import schema_of_type, value_of_type
from .script import Reply, write_script
from .tools import Tool, ToolHost, as_tool

T = TypeVar("T")

#: Commands that take as long as what they start: a shell command, a request to the model.
SLOW = {"prompt", "bash", "compact", "navigate_tree", "handoff", "login"}
#: Tools and callbacks that are no coroutines run in this many threads at most.
THREADS = 32


def _find_program() -> str:
    """The program on the PATH, else that of the package pinion-agent-cli, whose environment need not be activated."""
    return shutil.which("pinion") or shutil.which("pinion", path=sysconfig.get_path("scripts")) or "pinion"


class AsyncSession(AsyncCommands):
    """A session of the agent. `handle` is None for the first one."""

    def __init__(self, agent: AsyncAgent, handle: Optional[str]) -> None:
        self._agent = agent
        self.handle = handle

    async def call(self, command: str, params: Optional[dict[str, Any]] = None, timeout: Optional[float] = None) -> Any:
        """Sends any command and gives what it answers. Parameters that are None are left out."""
        return await self._agent._call(self.handle, command, params or {}, timeout)

    async def run(
        self,
        message: str,
        *,
        images: Optional[list[Any]] = None,
        streaming_behavior: Optional[str] = None,
        idle_timeout: Optional[float] = None,
        output_schema: Optional[dict[str, Any]] = None,
        limits: Optional[dict[str, Any]] = None,
        fallback_models: Optional[list[str]] = None,
    ) -> AsyncRun:
        """Prompts and gives what follows. `idle_timeout`: seconds without any event after which waiting ends.
        `output_schema`: JSON Schema of `RunResult.result`. `limits`: as in `set_limits`, for this run."""
        events = self.events(idle_timeout=idle_timeout)
        try:
            params = {
                "message": message,
                "images": images,
                "streamingBehavior": streaming_behavior,
                "outputSchema": output_schema,
                "limits": limits,
                "fallbackModels": fallback_models,
            }
            accepted = await self._agent._call(self.handle, "prompt", params, None, barrier=events)
        except BaseException:
            self._unsubscribe(events)
            raise
        return AsyncRun(self, events, (accepted or {}).get("disposition", "started"))

    async def ask(self, message: str, *, timeout: float = 3600.0, **options: Any) -> str:
        """Prompts and gives the text of the last answer. Raises `RunFailed` when the model failed; after `timeout` the
        run is aborted and `TimedOut` raised."""
        return (await self._finish(message, timeout, options)).raise_for_error().text

    @overload
    async def ask_json(self, message: str, schema: type[T], *, timeout: float = 3600.0, **options: Any) -> T: ...

    @overload
    async def ask_json(self, message: str, schema: dict[str, Any], *, timeout: float = 3600.0, **options: Any) -> Any: ...

    async def ask_json(self, message: str, schema: Any, *, timeout: float = 3600.0, **options: Any) -> Any:
        """Prompts and gives a value that fits the JSON Schema, or a value of the type: a dataclass, a `TypedDict`, a list of
        them. Raises `RunFailed` if the run gives none, and `TimedOut` as `ask` does."""
        is_schema = isinstance(schema, dict)
        wanted = schema if is_schema else schema_of_type(schema)
        result = (await self._finish(message, timeout, {**options, "output_schema": wanted})).raise_for_result().result
        return result if is_schema else value_of_type(schema, result)

    async def _finish(self, message: str, timeout: float, options: dict[str, Any]) -> RunResult:
        started: list[AsyncRun] = []

        async def finish() -> RunResult:
            started.append(await self.run(message, **options))
            return await started[0].result()

        try:
            # The answer to the prompt, too: it comes after a compaction or the start of MCP servers.
            return await asyncio.wait_for(finish(), timeout)
        except (asyncio.TimeoutError, TimedOut, asyncio.CancelledError) as error:
            for run in started:
                run.close()
            self._agent._quietly({"type": "abort", **({"session": self.handle} if self.handle else {})})
            if isinstance(error, asyncio.TimeoutError) and not isinstance(error, TimedOut):
                raise TimedOut(f"no complete answer after {timeout:g} s") from None
            raise

    def events(self, *, idle_timeout: Optional[float] = None) -> AsyncEvents:
        """All events of this session from now on. Call `close` when done."""
        events = AsyncEvents(idle_timeout or self._agent.idle_timeout)
        self._agent._subscribe(self.handle, events)
        return events

    async def set_tools(self, tools: Iterable[Union[Tool, Callable[..., Any]]]) -> list[str]:
        """Gives the session these tools in place of those it was given before. Needs an agent with host tools."""
        listed = [as_tool(item) for item in tools]
        # The new ones can be called from the moment the agent knows them.
        before = self._agent._tools.of(self.handle)
        self._agent._tools.replace(self.handle, listed)
        try:
            answer = await self.call("set_host_tools", {"tools": [item.definition() for item in listed]})
        except (TimedOut, ProtocolError, asyncio.CancelledError):
            # The agent has the command, or may still take it.
            raise
        except BaseException:
            self._agent._tools.replace(self.handle, before)
            raise
        return list((answer or {}).get("toolNames", []))

    async def close(self) -> None:
        """Closes the session; the agent goes on."""
        await self.call("close_session")
        self._agent._tools.forget(self.handle)
        self._agent._forget(self.handle)

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    def _unsubscribe(self, events: AsyncEvents) -> None:
        self._agent._listeners.discard((self.handle, events))


class AsyncAgent(AsyncSession):
    """A running agent, and its first session.

        async with AsyncAgent(model="anthropic/claude-sonnet-4-5") as agent:
            print(await agent.ask("What does this project do?"))
    """

    def __init__(
        self,
        *,
        program: Union[str, Sequence[str], None] = None,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        model: Optional[str] = None,
        provider: Optional[str] = None,
        thinking: Optional[str] = None,
        session: Optional[str] = None,
        session_dir: Optional[str] = None,
        persist: bool = True,
        tools: Iterable[Union[Tool, Callable[..., Any]]] = (),
        on_dialog: Optional[DialogHandler] = None,
        script: Union[Sequence[Union[Reply, str]], str, None] = None,
        record: Optional[str] = None,
        replay: Optional[str] = None,
        args: Sequence[str] = (),
        dialect: Optional[str] = "pi-delta",
        start_timeout: float = 30.0,
        command_timeout: float = 30.0,
        slow_timeout: float = 3600.0,
        idle_timeout: float = 900.0,
        dialog_timeout: float = 600.0,
        stop_timeout: float = 5.0,
    ) -> None:
        """Nothing is started yet; all times are in seconds.

        `program`: the agent, alone or with leading arguments (default: $PINION_PROGRAM, else `pinion` on the PATH, else the one
        that pip installed for this Python); `env`: added to the environment;
        `session`: file or beginning of an id; `persist=False` keeps nothing on disk; `script`: replies to play in place of a
        model, see `pinion_agent.script`; `record`: a file for everything that providers are asked and
        answer, without keys; `replay`: such a file, which answers in place of providers; `args`: further arguments;
        `slow_timeout`: for prompts and commands that run a shell or ask the model.
        """
        super().__init__(self, None)
        program = program or os.environ.get("PINION_PROGRAM") or _find_program()
        self._argv = [program] if isinstance(program, str) else list(program)
        self._options = {
            "--rpc-dialect": dialect,
            "--provider": provider,
            "--model": model,
            "--thinking": thinking,
            "--session": session,
            "--session-dir": session_dir,
            "--record": record,
            "--replay": replay,
        }
        self._args = ([] if persist else ["--no-session"]) + list(args)
        self._script = script
        self._script_file: Optional[str] = None
        self._cwd, self._env = cwd, env
        self._first_tools = [as_tool(item) for item in tools]
        self.start_timeout, self.command_timeout, self.slow_timeout = start_timeout, command_timeout, slow_timeout
        self.idle_timeout, self.dialog_timeout, self.stop_timeout = idle_timeout, dialog_timeout, stop_timeout
        self._on_dialog = on_dialog
        self._process = Process(self._frame, self._unreadable, self._ended)
        self._pending: dict[str, tuple[str, asyncio.Future[Any], Optional[AsyncEvents]]] = {}
        self._listeners: set[tuple[Optional[str], AsyncEvents]] = set()
        self._background: set[asyncio.Future[None]] = set()
        self._next_id = 0
        self._end: Optional[Exception] = None
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="pinion")
        self._tools = ToolHost(self._send_quietly, self._executor)
        self._dialogs = DialogHost(self._send_quietly, self._executor, on_dialog, dialog_timeout)

    # -- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> AsyncAgent:
        """Starts the agent and waits until it answers."""
        try:
            await self._process.start(self._command_line(), self._cwd, self._env)
            await self.call("get_state", timeout=self.start_timeout)
            if self._on_dialog is not None:
                await self._say_what_is_rendered()
            if self._first_tools:
                await self.set_tools(self._first_tools)
        except (Exception, asyncio.CancelledError) as error:
            # A start that fails or is cancelled must not leave the process behind.
            await self.close()
            if isinstance(error, (AgentExited, TimedOut)):
                raise StartError(f"the agent did not start: {error}") from error
            raise
        return self

    async def _say_what_is_rendered(self) -> None:
        """So that the agent takes questions back that are over. Agents that do not know how to are asked all the same."""
        try:
            await self.call("hello", {"ui": RENDERED}, timeout=self.start_timeout)
        except CommandError as error:
            if not error.unknown_command:
                raise

    async def close(self) -> None:
        """Ends the agent: closes its stdin, waits, helps with signals. Safe to call twice."""
        await self._process.stop(self.stop_timeout)
        self._ended(AgentExited(self._process.returncode, self._process.stderr))
        self._executor.shutdown(wait=False, cancel_futures=True)
        if self._script_file:
            os.unlink(self._script_file)
            self._script_file = None

    async def __aenter__(self) -> AsyncAgent:
        return await self.start()

    @property
    def returncode(self) -> Optional[int]:
        """Exit code of the agent, once it has ended."""
        return self._process.returncode

    @property
    def stderr(self) -> str:
        """The end of what the agent wrote to stderr."""
        return self._process.stderr

    def _command_line(self) -> list[str]:
        options: dict[str, Optional[str]] = dict(self._options)
        if self._script is not None:
            if isinstance(self._script, str):
                options["--script"] = self._script
            else:
                options["--script"] = self._script_file = write_script(self._script)
            options["--model"] = "offline/script"
        pairs = [word for name, value in options.items() if value is not None for word in (name, value)]
        return [*self._argv, "--mode", "rpc", *pairs, *self._args]

    # -- sessions -----------------------------------------------------------------------------------------------------

    async def open_session(  # type: ignore[override] # a session in place of its description
        self,
        session: Optional[str] = None,
        session_path: Optional[str] = None,
        cwd: Optional[str] = None,
        *,
        timeout: Optional[float] = None,
    ) -> AsyncSession:
        """Opens another session in this process, in a working directory of its own. Needs an agent with many sessions."""
        answer = await self.call("open_session", {"session": session, "sessionPath": session_path, "cwd": cwd}, timeout)
        return AsyncSession(self, answer["session"])

    async def close_session(  # type: ignore[override] # the handle says which session
        self, session: str, *, timeout: Optional[float] = None
    ) -> None:
        """Closes a session by its handle."""
        await self._call(session, "close_session", {}, timeout)
        self._tools.forget(session)
        self._forget(session)

    # -- lines --------------------------------------------------------------------------------------------------------

    async def _call(
        self,
        handle: Optional[str],
        command: str,
        params: dict[str, Any],
        timeout: Optional[float],
        barrier: Optional[AsyncEvents] = None,
    ) -> Any:
        if self._end is not None:
            raise self._end
        limit = timeout or (self.slow_timeout if command in SLOW else self.command_timeout)
        self._next_id += 1
        name = f"py{self._next_id}"
        frame: dict[str, Any] = {"id": name, "type": command}
        if handle is not None:
            frame["session"] = handle
        frame.update((key, value) for key, value in params.items() if value is not None)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[name] = (command, answer, barrier)
        try:
            await self._process.write(frame, limit)
            return await asyncio.wait_for(answer, limit)
        except asyncio.TimeoutError as error:
            if isinstance(error, TimedOut):
                raise
            raise TimedOut(f"{command}: no answer after {limit:g} s") from None
        finally:
            self._pending.pop(name, None)

    def _frame(self, frame: dict[str, Any]) -> None:
        kind = frame.get("type")
        if kind == "response":
            self._answered(frame)
            return
        if kind == "host_tool_call":
            self._tools.called(frame)
        elif kind == "host_tool_cancel":
            self._tools.cancelled(str(frame.get("targetId")))
        elif kind == "extension_ui_request":
            self._dialogs.requested(frame)
        handle = frame.get("session")
        for wanted, events in list(self._listeners):
            if wanted == handle:
                events._put(frame)

    def _answered(self, frame: dict[str, Any]) -> None:
        command, answer, barrier = self._pending.pop(str(frame.get("id")), (None, None, None))
        if answer is None or answer.done():
            return
        if barrier is not None:
            # A run begins after the answer to its prompt; what came before belongs to something else.
            barrier._waiting.clear()
        if frame.get("success"):
            answer.set_result(frame.get("data"))
        else:
            answer.set_exception(CommandError(str(command), str(frame.get("error", "failed")), frame.get("code")))

    def _unreadable(self, name: str, error: Exception) -> None:
        """The answer of one command cannot be read; nothing else is wrong."""
        _, answer, _ = self._pending.pop(name, (None, None, None))
        if answer is not None and not answer.done():
            answer.set_exception(error)

    def _ended(self, error: Exception) -> None:
        if self._end is not None:
            return
        self._end = error
        self._tools.cancel_all()
        self._dialogs.cancel_all()
        for _, answer, _ in self._pending.values():
            if not answer.done():
                answer.set_exception(error)
        for _, events in self._listeners:
            events._fail(error)

    async def _send_quietly(self, frame: dict[str, Any]) -> None:
        # The agent has exited; pending calls get that error elsewhere.
        with contextlib.suppress(PinionError):
            await self._process.write(frame, self.command_timeout)

    def _quietly(self, frame: dict[str, Any]) -> None:
        task = asyncio.ensure_future(self._send_quietly(frame))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _subscribe(self, handle: Optional[str], events: AsyncEvents) -> None:
        if self._end is not None:
            events._fail(self._end)
        self._listeners.add((handle, events))

    def _forget(self, handle: Optional[str]) -> None:
        for wanted, events in list(self._listeners):
            if wanted == handle:
                events.close()
                self._listeners.discard((wanted, events))
