"""Runs one prompt of a session on workers, so that it can be repeated: the example activities of Temporal and Restate share it.

The process that is started speaks the protocol of `pinion --mode rpc`. With `--attach URL/SESSION?client=NAME` it is a gateway. A command
whose `id` was sent before under the same name is not run again: it gets its first response.
"""

import asyncio
import json
from collections.abc import Callable

# A line can contain a whole message.
LINE_BYTES = 64 << 20


class PromptError(Exception):
    """The prompt was refused, or its run failed."""


async def run_prompt(
    command: list[str], command_id: str, message: str, on_event: Callable[[dict], None]
) -> str:
    """Sends a prompt, calls `on_event` for each event of the run and returns the text of the last answer."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=LINE_BYTES
    )
    assert process.stdin is not None and process.stdout is not None

    async def send(line: dict) -> None:
        process.stdin.write(json.dumps(line).encode() + b"\n")
        await process.stdin.drain()

    async def next_line() -> dict:
        line = await process.stdout.readline()
        if not line:
            raise PromptError("the gateway ended")
        return json.loads(line)

    async def response(line: dict) -> dict:
        await send(line)
        while True:
            answer = await next_line()
            if answer["type"] == "response" and answer.get("id") == line["id"]:
                if not answer["success"]:
                    raise PromptError(answer["error"])
                return answer.get("data") or {}
            on_event(answer)

    try:
        await response({"id": command_id, "type": "prompt", "message": message})
        # The run may have ended before this process came, or end at any time: its end is an event or the state says so.
        while (await response({"id": f"{command_id} state", "type": "get_state"}))["isStreaming"]:
            event = await next_line()
            while event["type"] != "agent_settled":
                on_event(event)
                event = await next_line()
        text = await response({"id": f"{command_id} text", "type": "get_last_assistant_text"})
        return text.get("text") or ""
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
