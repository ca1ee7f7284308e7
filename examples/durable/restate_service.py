"""A Restate service: each session is a virtual object, so its prompts run one after the other.

    pip install restate-sdk hypercorn
    npx @restatedev/restate-server
    PINION_NATS=nats://127.0.0.1:4222/team hypercorn --bind 127.0.0.1:9080 restate_service:app
    curl 127.0.0.1:9070/deployments --json '{"uri": "http://127.0.0.1:9080"}'
    curl 127.0.0.1:8080/session/chat-7/prompt --json '"Which files are here?"'

The command id comes from Restate's journal, so a handler that is started again sends the same one: Pinion runs the prompt once.
"""

import os

import restate
from prompt import run_prompt

session = restate.VirtualObject("session")


def gateway(name: str) -> list[str]:
    url = os.environ.get("PINION_NATS", "nats://127.0.0.1:4222")
    return ["pinion", "--mode", "rpc", "--attach", f"{url}/{name}?client=restate"]


@session.handler()
async def prompt(context: restate.ObjectContext, message: str) -> str:
    command_id = str(context.uuid())

    async def answer() -> str:
        return await run_prompt(gateway(context.key()), command_id, message, lambda event: None)

    return await context.run_typed("prompt", answer)


app = restate.app([session])
