"""A Temporal worker with an activity that runs a prompt.

    pip install temporalio
    temporal server start-dev
    PINION_NATS=nats://127.0.0.1:4222/team python3 temporal_worker.py

The activity sends a heartbeat for each event, so that a lost worker of Temporal is noticed within the heartbeat timeout. Its next attempt
sends the same command id: Pinion runs the prompt once.
"""

import asyncio
import os
from dataclasses import dataclass
from datetime import timedelta

from prompt import run_prompt
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker


@dataclass
class Prompt:
    session: str
    message: str
    # Seconds without an event after which the activity counts as lost. An answer is silent while a command runs.
    silence: float = 600


def gateway(session: str, name: str) -> list[str]:
    """The gateway of a session. `name` is what makes command ids unique."""
    url = os.environ.get("PINION_NATS", "nats://127.0.0.1:4222")
    return ["pinion", "--mode", "rpc", "--attach", f"{url}/{session}?client={name}"]


@activity.defn
async def run(prompt: Prompt) -> str:
    info = activity.info()
    command_id = f"{info.workflow_run_id}/{info.activity_id}"
    return await run_prompt(
        gateway(prompt.session, "temporal"),
        command_id,
        prompt.message,
        lambda event: activity.heartbeat(event["type"]),
    )


@workflow.defn
class PromptWorkflow:
    @workflow.run
    async def run(self, prompt: Prompt) -> str:
        return await workflow.execute_activity(
            run,
            prompt,
            start_to_close_timeout=timedelta(hours=1),
            heartbeat_timeout=timedelta(seconds=prompt.silence),
        )


async def main() -> None:
    client = await Client.connect(os.environ.get("TEMPORAL_ADDRESS", "localhost:7233"))
    worker = Worker(
        client,
        task_queue="pinion",
        workflows=[PromptWorkflow],
        activities=[run],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    await worker.run()


if __name__ == "__main__":
    asyncio.run(main())
