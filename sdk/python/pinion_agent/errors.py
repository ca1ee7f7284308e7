"""What can go wrong. Everything derives from `PinionError`."""

from __future__ import annotations

from typing import Any, Optional


class PinionError(Exception):
    """Base of all errors of this package."""


class StartError(PinionError):
    """The agent could not be started, or ended before it answered."""


class AgentExited(PinionError):
    """The agent is gone while somebody waits for it."""

    def __init__(self, returncode: Optional[int], stderr: str) -> None:
        tail = stderr.strip().splitlines()[-3:]
        super().__init__(
            "the agent ended" + (f" with code {returncode}" if returncode is not None else "") + "".join(f"\n  {line}" for line in tail)
        )
        self.returncode = returncode
        #: The end of what it wrote to stderr.
        self.stderr = stderr


class CommandError(PinionError):
    """The agent refused a command; nothing has changed."""

    def __init__(self, command: str, message: str, code: Optional[str] = None) -> None:
        super().__init__(f"{command}: {message}")
        self.command = command
        #: The agent's words; the known ones do not change between versions.
        self.message = message
        self.code = code

    @property
    def unknown_command(self) -> bool:
        """Does this agent not know the command?"""
        return self.message.startswith("Unknown command")


class TimedOut(PinionError, TimeoutError):
    """A time limit passed. The agent goes on; `abort` ends what it does."""


class ProtocolError(PinionError):
    """The other side does not speak the protocol."""


class Lagged(PinionError):
    """Events came faster than they were taken, and the buffer is full."""


class RunFailed(PinionError):
    """A run ended in an error or was aborted; `result` has what there is of it."""

    def __init__(self, result: Any) -> None:
        aborted = "the run was aborted" if result.aborted else "the run gave no result"
        super().__init__(result.error or result.result_error or aborted)
        self.result = result
