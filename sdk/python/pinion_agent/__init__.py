"""Client for the coding agent pinion, and for other agents that speak its protocol (`--mode rpc`).

`Agent` blocks, `AsyncAgent` is for asyncio; both start the agent as a child process. `protocol` has the types of events
and answers.
"""

from . import protocol, script
from .blocking import Agent, Events, Run, Session
from .client import AsyncAgent, AsyncSession
from .dialogs import Denial, Dialog
from .errors import (
    AgentExited,
    CommandError,
    Lagged,
    PinionError,
    ProtocolError,
    RunFailed,
    StartError,
    TimedOut,
)
from .run import AsyncEvents, AsyncRun, RunResult
from .script import failure, reply, tool_call, tool_calls, when
from .tools import Tool, ToolCall, tool

__all__ = [
    "Agent",
    "AgentExited",
    "AsyncAgent",
    "AsyncEvents",
    "AsyncRun",
    "AsyncSession",
    "CommandError",
    "Denial",
    "Dialog",
    "Events",
    "Lagged",
    "PinionError",
    "ProtocolError",
    "Run",
    "RunFailed",
    "RunResult",
    "Session",
    "StartError",
    "TimedOut",
    "Tool",
    "ToolCall",
    "failure",
    "protocol",
    "reply",
    "script",
    "tool",
    "tool_call",
    "tool_calls",
    "when",
]
