"""`bench/bytes`: runs the scripted tasks and fails where a request of Pinion is larger than that of pi in `bench/pi-bytes.json`."""
from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from typing import Any

from . import install, speed, tokens
from .agents import Model
from .install import Peer

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(BENCH)
FILE = os.path.join(BENCH, "pi-bytes.json")
# The parts of a request that are compared alone, too. Results are not: some of Pinion's say more.
PARTS = ("system", "tools")


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/bytes", description="Fails if Pinion sends more bytes to the model than pi.")
    parser.add_argument("--pinion", default=os.path.join(ROOT, "target/release/pinion"),
                        help="binary under test (default: target/release/pinion)")
    parser.add_argument("--record", action="store_true", help="install pi and store what it sends; compares nothing")
    parser.add_argument("--work", type=os.path.abspath, default=os.path.join(ROOT, "target/bench"),
                        help="folder of installed agents (default: target/bench)")
    return parser.parse_args(given)


def run(peer: Peer) -> dict[str, Any]:
    """Runs every task through one agent."""
    folder = tempfile.mkdtemp(prefix="pinion-bench-")
    model = Model()
    try:
        return tokens.measure(speed.Context(model, folder, speed.Sizes.quick()), peer)
    finally:
        model.stop()
        shutil.rmtree(folder, ignore_errors=True)


def failures(found: dict[str, Any]) -> list[str]:
    return [f"{task}: {figures['failed']}" for task, figures in found.items() if "failed" in figures]


def record(options: argparse.Namespace) -> int:
    """Stores what pi sends."""
    request = install.REQUESTS[0]
    peer = install.install(request, os.path.join(options.work, "peers"))
    if peer.missing or peer.version != request.version:
        print(f"pi {request.version} is not installed: {peer.missing or peer.note}", file=sys.stderr)
        return 1
    found = run(peer)
    failed = failures(found)
    if failed:
        print("\n".join(failed), file=sys.stderr)
        return 1
    kept = {task: {key: figures[key] for key in (*PARTS, "results", "each")} for task, figures in found.items()}
    lines = [f"  {json.dumps(task)}: {json.dumps(figures)}" for task, figures in kept.items()]
    head = f'"pi": {json.dumps(peer.version)},\n"note": {json.dumps(peer.note)},\n"tasks": {{\n'
    with open(FILE, "w", encoding="utf-8") as file:
        file.write("{\n" + head + ",\n".join(lines) + "\n}}\n")
    return 0


def larger(task: str, ours: dict[str, Any], pi: dict[str, Any]) -> list[str]:
    """Returns what is larger than in pi."""
    found = [f"{task}: {part}: {ours[part]} bytes, pi has {pi[part]}" for part in PARTS if ours[part] > pi[part]]
    if len(ours["each"]) != len(pi["each"]):
        return [*found, f"{task}: {len(ours['each'])} requests, pi sends {len(pi['each'])}"]
    pairs = enumerate(zip(ours["each"], pi["each"]), 1)
    return found + [f"{task}: request {n}: {a} bytes, pi sends {b}" for n, (a, b) in pairs if a > b]


def main(given: list[str] | None = None) -> int:
    options = arguments(given)
    if options.record:
        return record(options)
    with open(FILE, encoding="utf-8") as file:
        stored = json.load(file)
    found = run(install.pinion(options.pinion))
    failed = failures(found)
    print(f"{'bytes to the model':24}{'requests':>9}{'Pinion':>10}{'pi ' + stored['pi']:>10}")
    for task, figures in found.items():
        pi = stored["tasks"].get(task)
        if pi is None:
            failed.append(f"{task}: pi's bytes are not stored; bench/bytes --record stores them")
        elif "failed" not in figures:
            print(f"{task:24}{len(figures['each']):>9}{sum(figures['each']):>10,}{sum(pi['each']):>10,}")
            failed += larger(task, figures, pi)
    failed += [f"{task}: stored, but no task" for task in stored["tasks"] if task not in found]
    print("\n".join(f"FAILED: {text}" for text in failed) or "No request is larger than that of pi.")
    return 1 if failed else 0
