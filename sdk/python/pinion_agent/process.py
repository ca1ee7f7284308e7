"""The agent as a child process: lines in, lines out, an end in bounded time. Knows nothing of what the lines mean."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Coroutine, Mapping
from typing import Any, Callable, Optional

from .decoder import ENDS, decode, response_id
from .errors import AgentExited, ProtocolError, StartError, TimedOut

#: Longest line, in bytes.
MAX_LINE = 256 << 20
#: How much of stderr is kept, in bytes.
STDERR_TAIL = 64 << 10
_CHUNK = 1 << 16
#: Seconds that an agent whose pipe is closed may take to end: milliseconds, unless the machine is busy.
EXIT_WAIT = 10.0
#: Seconds between two looks at whether the agent has ended.
_POLL = 0.01


class Process:
    """A running agent. `on_frame` is called with every object it writes, `on_unreadable` with the id of a command whose answer
    cannot be read and the reason, `on_end` once when it has ended."""

    def __init__(
        self,
        on_frame: Callable[[dict[str, Any]], None],
        on_unreadable: Callable[[str, ProtocolError], None],
        on_end: Callable[[Exception], None],
    ) -> None:
        self._on_frame = on_frame
        self._on_unreadable = on_unreadable
        self._on_end = on_end
        self._child: Optional[asyncio.subprocess.Process] = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stderr = bytearray()
        # Made in `start`: older Pythons tie a lock to the loop that runs at its making.
        self._writing: Optional[asyncio.Lock] = None

    @property
    def stderr(self) -> str:
        """The end of what the agent wrote to stderr."""
        return self._stderr.decode("utf-8", "replace")

    @property
    def returncode(self) -> Optional[int]:
        return self._child.returncode if self._child else None

    async def start(self, argv: list[str], cwd: Optional[str], env: Optional[Mapping[str, str]]) -> None:
        self._writing = asyncio.Lock()
        try:
            self._child = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=cwd,
                env={**os.environ, **env} if env else None,
            )
        except OSError as error:
            raise StartError(f"cannot start {argv[0]}: {error}") from error
        self._tasks = [asyncio.ensure_future(self._read()), asyncio.ensure_future(self._read_stderr())]

    async def write(self, frame: dict[str, Any], timeout: float) -> None:
        """Writes one line, waiting while the agent does not read."""
        # The agent refuses a line with `NaN` without saying to which command or call it belongs.
        text = json.dumps(frame, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        line = text.encode("utf-8", "surrogatepass") + b"\n"
        child = self._child
        lock = self._writing
        if child is None or lock is None or child.stdin is None or child.returncode is not None:
            raise await self._gone()
        stdin = child.stdin

        async def send() -> None:
            async with lock:
                stdin.write(line)
                await stdin.drain()

        try:
            await asyncio.wait_for(send(), timeout)
        except asyncio.TimeoutError:
            raise TimedOut(f"the agent did not read its input for {timeout:g} s") from None
        except (ConnectionError, RuntimeError):
            raise await self._gone() from None

    async def _gone(self) -> AgentExited:
        """The error that says what the agent left behind, which takes a moment to arrive."""
        if self._child is not None:
            await self._exited(self._child, EXIT_WAIT)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2.0)
        return AgentExited(self.returncode, self.stderr)

    async def stop(self, timeout: float) -> Optional[int]:
        """Closes stdin, which ends the agent; helps with SIGTERM and SIGKILL when it takes longer than `timeout`."""
        child = self._child
        if child is None:
            return None
        if child.stdin is not None:
            child.stdin.close()
        for hurry in (None, child.terminate, child.kill):
            try:
                if hurry is not None:
                    hurry()
            except ProcessLookupError:
                break
            if await self._exited(child, timeout):
                break
        # What it still said is read; grandchildren that keep the pipes open are not waited for.
        _, pending = await asyncio.wait(self._tasks, timeout=1.0)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        if child.stdin is not None:
            # An error means that the agent ended with lines unread.
            with contextlib.suppress(OSError, asyncio.TimeoutError):
                await asyncio.wait_for(child.stdin.wait_closed(), 1.0)
        return child.returncode

    async def _exited(self, child: asyncio.subprocess.Process, timeout: float) -> bool:
        """Waits for the end of the process. In Python 3.11 `wait` also waits for its pipes, which grandchildren may keep open."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        while child.returncode is None:
            if loop.time() > end:
                return False
            await asyncio.sleep(_POLL)
        return True

    async def _read(self) -> None:
        child = self._child
        assert child is not None and child.stdout is not None
        error: Optional[Exception] = None
        parts: list[bytes] = []
        size = 0
        too_long = False
        try:
            while True:
                chunk = await child.stdout.read(_CHUNK)
                if not chunk:
                    break
                *lines, rest = chunk.split(b"\n")
                for line in lines:
                    parts.append(line)
                    self._line(b"".join(parts), too_long)
                    parts, size, too_long = [], 0, False
                parts.append(rest)
                size += len(rest)
                # Of a line that is too long only the ends are kept.
                if size > MAX_LINE or (too_long and size > 1 << 20):
                    whole = b"".join(parts)
                    parts, size, too_long = [whole[:ENDS], whole[-ENDS:]], 2 * ENDS, True
        except (ConnectionError, ProtocolError) as problem:
            error = problem
        if error is None:
            # stdout is closed: the code and the last words follow in a moment, later on a busy machine. Grandchildren may keep stderr open.
            await self._exited(child, EXIT_WAIT)
            await asyncio.wait({self._tasks[1]}, timeout=1.0)
            error = AgentExited(child.returncode, self.stderr)
        self._on_end(error)

    def _line(self, line: bytes, too_long: bool) -> None:
        if not line.strip():
            return
        try:
            if too_long:
                raise ValueError(f"a line is longer than {MAX_LINE} bytes")
            frame = decode(line)
        except (ValueError, MemoryError, RecursionError) as problem:
            name = response_id(line)
            if name is None:
                raise ProtocolError(f"not JSON: {line[:200]!r}") from None
            self._on_unreadable(name, ProtocolError(f"the answer cannot be read ({problem}): {line[:200]!r}"))
            return
        if not isinstance(frame, dict):
            return
        try:
            self._on_frame(frame)
        except Exception as problem:
            # An odd frame must not end the reader, which all other calls depend on.
            context = {"message": "a frame of the agent could not be handled", "exception": problem}
            asyncio.get_running_loop().call_exception_handler(context)

    async def _read_stderr(self) -> None:
        assert self._child is not None and self._child.stderr is not None
        while True:
            chunk = await self._child.stderr.read(_CHUNK)
            if not chunk:
                return
            self._stderr += chunk
            del self._stderr[:-STDERR_TAIL]


Sender = Callable[[dict[str, Any]], Coroutine[Any, Any, None]]
