#!/usr/bin/env python3
"""pi-agent-python-sdk from PyPI, unmodified, in front of our program (see mocked.py): mocked.py PROGRAM KIT python3 pi-agent-sdk.py

PYTHONPATH names the folder it is installed in. It finds `pi` by the path and asks for its version before anything else. The
asynchronous client holds the conversation, the blocking one opens it again.
"""
import asyncio
import importlib.metadata
import os

from pi_agent import AsyncPiClient, PiClient
from pi_agent.errors import PiCommandError, PiRunError

VERSION = importlib.metadata.version("pi-agent-python-sdk")
OPTIONS = {"cwd": os.environ["PI_WORK"], "provider": "mock", "model": "claude-mock"}


def check(what, holds, seen=None):
    if not holds:
        raise SystemExit(f"pi-agent-python-sdk {VERSION}: not as expected: {what}: {seen}")


def spoken(messages):
    """Without what later ones of pi put in front: the system prompt."""
    return [message for message in messages if message["role"] != "system"]


async def converse():
    async with AsyncPiClient(**OPTIONS) as pi:
        check("a version it can use", pi.compatibility in ("tested", "untested"), pi.compatibility)
        state = await pi.get_state()
        check("the state before", state["model"]["id"] == "claude-mock" and not state["isStreaming"], state)
        check("thinking levels", "high" in await pi.get_available_thinking_levels())
        check("the commands", isinstance(await pi.get_commands(), list))

        events = []
        async with pi.stream("Run the tool", timeout=30) as stream:
            async for event in stream:
                events.append(event)
            result = await stream.result()
        text = "".join(event.text_delta for event in events if event.text_delta is not None)
        check("the text in pieces", text == "I shall run it. \u00fc\u2028\U0001f600The answer is complete.", text)
        check("the answer", result.text == "The answer is complete." and result.stop_reason == "stop", result.text)
        check("what it used", result.usage.total_tokens and result.usage.cost, result.usage)
        ended = next(event.raw for event in events if event.type == "tool_execution_end")
        check("the tool's result", ended["result"]["content"][0]["text"] == "ran-by-the-agent\n", ended)

        # Once an abort by hand; leaving the stream early, the client's own way, comes after it.
        try:
            async with pi.stream("Hang", timeout=30) as stream:
                async for event in stream:
                    if event.text_delta is not None:
                        check("the state in a run", (await pi.get_state())["isStreaming"] is True)
                        await pi.abort()
                result = await stream.result()
            check("an aborted run", False, result)
        except PiRunError as error:
            check("an aborted answer", error.result.stop_reason == "aborted" and error.result.text == "Begun", error.result)
        check("an answer after the abort", (await pi.run("After that", timeout=30)).text == "Still alive.")

        check("the conversation", len(spoken(await pi.get_messages())) == 8)
        check("the counts", (await pi.get_session_stats())["toolCalls"] == 1)
        check("the entries", len((await pi.get_entries())["entries"]) >= 8)
        check("the tree", (await pi.get_tree())["leafId"])
        check("a shell command", (await pi.bash("echo hi"))["output"] == "hi\n")
        queue = await pi.clear_queue()
        check("an empty queue", queue["steering"] == [] and queue["followUp"] == [], queue)
        try:
            await pi.set_model("nobody", "nothing")
            check("an error", False, "no error for a model that is not there")
        except PiCommandError:
            pass
        return pi.session.session_file, len(events)


def main():
    file, count = asyncio.run(converse())
    with PiClient(**OPTIONS, session=str(file)) as pi:
        check("the conversation after a restart", len(spoken(pi.get_messages())) == 9, pi.get_messages())
        check("the last answer", pi.get_last_assistant_text() == "Still alive.")
    print(f"ok: pi-agent-python-sdk {VERSION}: tool, abort, answer after it, opened again, {count} events in the first run")


main()
