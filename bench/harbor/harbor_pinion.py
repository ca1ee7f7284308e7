"""Runs Pinion on Terminal-Bench and other data sets of Harbor (PyPI `harbor`, Python 3.12).

    PYTHONPATH=bench/harbor harbor run -d terminal-bench@2.0 -m anthropic/claude-sonnet-4-5 \\
        --agent harbor_pinion:Pinion --agent-env ANTHROPIC_API_KEY=... --agent-kwarg binary=target/dist/pinion

The binary is copied into the environment of each task and must run there. Keys reach Pinion only through `--agent-env`.
"""
from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

INSTALLED = "/usr/local/bin/pinion"
EVENTS = "pinion.jsonl"


class Pinion(BaseAgent):
    """Copies the binary into the environment and answers the instruction with `pinion --mode json --print`."""

    def __init__(self, logs_dir: Path, *args: Any, binary: str = "target/dist/pinion", options: str = "", **kwargs: Any) -> None:
        """`binary` is a path on this machine; `options` are more options for the command line of Pinion."""
        super().__init__(logs_dir, *args, **kwargs)
        self.binary = Path(binary)
        self.more = shlex.split(options)
        self.shown_version: str | None = None

    @staticmethod
    def name() -> str:
        return "pinion"

    def version(self) -> str | None:
        return self.shown_version

    async def setup(self, environment: BaseEnvironment) -> None:
        if not self.binary.is_file():
            raise FileNotFoundError(f"{self.binary} does not exist; build it or pass --agent-kwarg binary=PATH")
        await environment.upload_file(self.binary, INSTALLED)
        shown = await environment.exec(f"chmod 755 {INSTALLED} && {INSTALLED} --version", user="root", timeout_sec=60)
        if shown.return_code:
            raise RuntimeError(f"pinion does not run in the environment: {shown.stderr or shown.stdout}")
        self.shown_version = (shown.stdout or "").strip().removeprefix("pinion ")

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        model = ["--model", self.model_name] if self.model_name else []
        command = [INSTALLED, "--mode", "json", "--no-approve", *model, *self.more, "--print", "--", instruction]
        result = await environment.exec(shlex.join(command) + " < /dev/null", env=self.extra_env)
        self.logs_dir.mkdir(parents=True, exist_ok=True)
        (self.logs_dir / EVENTS).write_text(result.stdout or "", encoding="utf-8")
        add_usage(result.stdout or "", context)
        if result.return_code:
            raise RuntimeError(f"pinion ended with {result.return_code}: {(result.stderr or '')[-2000:]}")


def add_usage(events: str, context: AgentContext) -> None:
    """Adds the tokens and the cost of all answers. Harbor counts cached tokens as input."""
    given = cached = written = 0
    cost = 0.0
    for line in events.splitlines():
        if not line.startswith('{"type":"message_end"'):
            continue
        usage = json.loads(line)["message"].get("usage")
        if usage:
            given += usage["input"] + usage["cacheRead"] + usage["cacheWrite"]
            cached += usage["cacheRead"]
            written += usage["output"]
            cost += usage["cost"]["total"]
    context.n_input_tokens, context.n_cache_tokens, context.n_output_tokens = given, cached, written
    context.cost_usd = cost or None
