#!/usr/bin/env python3
"""pi-py-sdk from PyPI, unmodified, in front of our program (see mocked.py): mocked.py PROGRAM KIT python3 pi-py-sdk.py

PYTHONPATH names the folder it is installed in. It finds `pi` by the path.
"""
import asyncio
import importlib.metadata
import os

from pi_py_sdk import PiAgent
from pi_py_sdk.errors import PiCommandError
from pi_py_sdk.protocol import message_text

VERSION = importlib.metadata.version("pi-py-sdk")


def check(what, holds, seen=None):
    if not holds:
        raise SystemExit(f"pi-py-sdk {VERSION}: not as expected: {what}: {seen}")


def joined(events, kind):
    updates = [event.assistantMessageEvent for event in events if event.type == "message_update"]
    return "".join(update.delta for update in updates if update.type == kind)


async def main():
    async with PiAgent(provider="mock", model="claude-mock", cwd=os.environ["PI_WORK"]) as agent:
        state = await agent.get_state()
        check("the state before", state["model"]["id"] == "claude-mock" and not state["isStreaming"], state)
        check("the models", any(model["id"] == "claude-mock" for model in await agent.get_available_models()))

        events = await agent.prompt_and_wait("Run the tool", timeout=30)
        check("the thinking in pieces", joined(events, "thinking_delta") == "Let me see.", events)
        text = joined(events, "text_delta")
        check("the text in pieces", text == "I shall run it. \u00fc\u2028\U0001f600The answer is complete.", text)
        started = next(event for event in events if event.type == "tool_execution_start")
        check("the tool's arguments", started.args == {"command": "echo ran-by-the-agent"}, started)
        ended = next(event for event in events if event.type == "tool_execution_end")
        check("the tool's result", not ended.isError and ended.result["content"][0]["text"] == "ran-by-the-agent\n", ended)
        check("the last answer", await agent.get_last_assistant_text() == "The answer is complete.")

        aborted = None
        async for event in agent.prompt_stream("Hang", timeout=30):
            if event.type == "message_update" and event.assistantMessageEvent.type == "text_delta":
                check("the state in a run", (await agent.get_state())["isStreaming"] is True)
                await agent.abort()
            if event.type == "message_end" and event.message["role"] == "assistant":
                aborted = event.message
        check("an aborted answer", aborted is not None and aborted["stopReason"] == "aborted", aborted)

        await agent.prompt_and_wait("After that", timeout=30)
        messages = [message for message in await agent.get_messages() if message.role != "system"]
        check("the conversation", len(messages) == 8, messages)
        check("an answer after the abort", message_text(messages[-1]) == "Still alive.", messages[-1])
        check("a shell command", (await agent.bash("echo hi"))["output"] == "hi\n")
        check("the counts", (await agent.get_session_stats())["toolCalls"] == 1)
        fork = (await agent.get_fork_messages())[0]
        check("a fork", (await agent.fork(fork["entryId"]))["text"] == "Run the tool")
        try:
            await agent.set_model("nobody", "nothing")
            check("an error", False, "no error for a model that is not there")
        except PiCommandError:
            pass
    print(f"ok: pi-py-sdk {VERSION}: tool, abort, answer after it, {len(events)} events in the first run")


asyncio.run(main())
