"""The command line: installs, measures in turns, stores the results and writes the page."""
from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import os
import platform
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from . import install, report, speed, tokens
from .agents import Model, NotApplicable, Refused
from .install import Peer

HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# A measurement that took longer is not repeated in the later rounds.
LONG_MEASUREMENT = 45.0
# Within a round a measurement runs again until this many seconds have passed, at most so often: a start of 5 ms varies more than one
# of 2 s.
ROUND_SECONDS = 8.0
ROUND_REPEATS = 9


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/run", description="Compares Pinion with other headless coding agents.")
    parser.add_argument("--pinion", default=os.path.join(HERE, "target/release/pinion"),
                        help="binary under test (default: target/release/pinion)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds; each measures every agent once (default: 5)")
    parser.add_argument("--only", default="", help=f"measurements, comma-separated: {', '.join(speed.MEASUREMENTS)}")
    parser.add_argument("--peers", default="",
                        help="agents, comma-separated: pinion, floor, " + ", ".join(r.name for r in install.REQUESTS))
    parser.add_argument("--tokens", action="store_true", help="also run the scripted tasks and count what each agent sends to the model")
    parser.add_argument("--quick", action="store_true",
                        help="one round with small amounts, without opencode; prints the bytes of --tokens, writes no page")
    parser.add_argument("--minutes", type=float, default=0, help="start no round after this many minutes (default: no limit)")
    parser.add_argument("--work", type=os.path.abspath, default=os.path.join(HERE, "target/bench"),
                        help="folder of installed agents and results")
    parser.add_argument("--book", default=os.path.join(HERE, "docs"), help="folder of the book that gets page, charts and raw results")
    parser.add_argument("--page", action="store_true", help="only write the page again from the stored results")
    parser.add_argument("--merge", action="store_true", help="add the rounds to the stored results, which must be of the same binary")
    parser.add_argument("--against", default="", help="with --page: figures.json of another run, whose ratios are compared")
    return parser.parse_args(given)


def machine() -> dict[str, Any]:
    name = platform.machine()
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
    with open("/proc/meminfo", encoding="utf-8") as file:
        memory = int(file.readline().split()[1]) / 1e6
    return {"cpu": name, "cores": os.cpu_count(), "memory_gb": round(memory), "kernel": platform.release().split("-")[0],
            "load_before": round(os.getloadavg()[0], 1)}


def peers(options: argparse.Namespace) -> list[Peer]:
    wanted = options.peers.split(",") if options.peers else []
    if options.quick and not wanted:
        wanted = ["pinion", "floor", "pi", "codex"]
    root = os.path.join(options.work, "peers")
    os.makedirs(root, exist_ok=True)
    found = [install.pinion(options.pinion)]
    if not wanted or "floor" in wanted:
        found.append(install.floor(root))
    for request in install.REQUESTS:
        if not wanted or request.name in wanted:
            found.append(install.install(request, root))
            print(f"{request.name}: {(found[-1].missing and 'missing: ' + found[-1].missing) or found[-1].version}", file=sys.stderr)
    return found


def one(context: speed.Context, name: str, peer: Peer) -> dict[str, Any]:
    """Runs a measurement once. A failure is a result: it has a reason."""
    try:
        return dict(speed.MEASUREMENTS[name](context, peer))
    except NotApplicable as reason:
        return {"none": str(reason)}
    except (Refused, TimeoutError, EOFError, OSError, ValueError, KeyError, IndexError) as error:
        return {"failed": failure(error)}
    finally:
        context.stop()


def medians(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the median of each value. A single run without figures makes the round one without figures."""
    for entry in entries:
        if "failed" in entry or "none" in entry:
            return entry
    return {key: statistics.median(entry[key] for entry in entries) for key in entries[0]}


def repeated(run: Callable[[], dict[str, Any]], seconds: float) -> dict[str, Any]:
    """Runs a measurement once, and again while there is time. Returns the medians."""
    began = time.monotonic()
    entries = [run()]
    while len(entries) < ROUND_REPEATS and not {"failed", "none"} & set(entries[-1]):
        spent = time.monotonic() - began
        if spent + spent / len(entries) > seconds:
            break
        entries.append(run())
    return medians(entries)


def failure(error: BaseException) -> str:
    """Returns the first words of an error, without paths of this machine."""
    text = str(error).replace(HERE, "").split("; last output")[0]
    return f"{type(error).__name__}: {text[:120]}".replace("|", "/").replace("\n", " ").replace(tempfile.gettempdir(), "")


def measure(options: argparse.Namespace, present: list[Peer], sizes: speed.Sizes, folder: str,
            before: dict[str, Any], store: Callable[[dict[str, Any], int], None]) -> dict[str, Any]:
    """Runs the rounds: within a round, all agents do one measurement before the next one begins."""
    names = options.only.split(",") if options.only else list(speed.MEASUREMENTS)
    found: dict[str, Any] = {name: {} for name in names}
    began, rounds = time.monotonic(), 0
    model = Model()
    try:
        for turn in range(1 if options.quick else options.rounds):
            if options.minutes and time.monotonic() - began > options.minutes * 60:
                break
            for name in names:
                for peer in present[turn % len(present):] + present[: turn % len(present)]:
                    earlier = found[name].setdefault(peer.name, [])
                    known = [*before.get(name, {}).get(peer.name, []), *earlier]
                    if known and (name in speed.ONCE or "cannot_repeat" in known[0]):
                        continue
                    at = time.monotonic()
                    seconds = 0.0 if options.quick or name in speed.ONCE else ROUND_SECONDS
                    values = repeated(lambda: one(speed.Context(model, folder, sizes), name, peer), seconds)    # noqa: B023
                    if "failed" in values or "none" in values or time.monotonic() - at > LONG_MEASUREMENT:
                        values["cannot_repeat"] = 1
                    earlier.append(values)
                    shown = " ".join(f"{k}={report.number(v) if isinstance(v, float) else v}" for k, v in values.items())
                    print(f"{turn + 1} {name:13} {peer.name:10} {shown} [{time.monotonic() - at:.0f} s]", file=sys.stderr, flush=True)
            rounds += 1
            store(found, rounds)
    finally:
        model.stop()
    return found


def page(results: dict[str, Any], book: str) -> None:
    charts = {"compare-tokens.svg": tokens.picture(results)} if results.get("tokens") else {}
    report.write(results, book, tokens.section(results), charts)


def joined(before: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Appends the rounds of this run to those of an earlier one."""
    out = {name: dict(agents) for name, agents in before.items()}
    for name, agents in found.items():
        for peer, rounds in agents.items():
            out.setdefault(name, {})[peer] = [*out.get(name, {}).get(peer, []), *rounds]
    return out


def token_figures(present: list[Peer], sizes: speed.Sizes, folder: str) -> dict[str, Any]:
    model = Model()
    try:
        return {p.name: tokens.measure(speed.Context(model, folder, sizes), p) for p in present if p.kind != "floor"}
    finally:
        model.stop()


def end(number: int, _: Any) -> None:
    """A signal ends the run like an error: every agent is stopped."""
    raise SystemExit(128 + number)


def main(given: list[str] | None = None) -> int:
    options = arguments(given)
    signal.signal(signal.SIGTERM, end)
    stored = os.path.join(options.work, "results.json")
    if options.page:
        with open(stored, encoding="utf-8") as file:
            results = json.load(file)
        if options.against:
            with open(options.against, encoding="utf-8") as file:
                results["again"] = report.again(results, json.load(file))
        page(results, options.book)
        return 0
    began = time.monotonic()
    state = machine()
    every = peers(options)
    present = [p for p in every if not p.missing]
    sizes = speed.Sizes.quick() if options.quick else speed.Sizes()
    before: dict[str, Any] = {"speed": {}}
    if options.merge and os.path.exists(stored):
        with open(stored, encoding="utf-8") as file:
            before = json.load(file)
    folder = tempfile.mkdtemp(prefix="pinion-bench-")

    sent = token_figures(present, sizes, folder) if options.tokens else {}

    def store(found: dict[str, Any], rounds: int) -> None:
        """Writes what is known after a round, so that a run that is interrupted is not lost."""
        if options.quick:
            return
        results: dict[str, Any] = {
            **before, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
            "rounds": rounds + before.get("rounds", 0), "seconds": time.monotonic() - began + before.get("seconds", 0),
            "machine": {**state, "load_after": round(os.getloadavg()[0], 1)}, "sizes": dataclasses.asdict(sizes),
            "speed": joined(before["speed"], found), **({"tokens": sent} if sent else {})}
        if not before.get("peers"):
            shown = ("name", "version", "wanted", "missing", "note")
            results["peers"] = [{key: getattr(p, key) for key in shown} for p in every]
        with open(stored, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
        page(results, options.book)

    try:
        found = measure(options, present, sizes, folder, before["speed"], store)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    failed = [f"{m} {p}: {r['failed']}" for m, agents in found.items() for p, entries in agents.items() for r in entries if "failed" in r]
    failed += [f"{task} {p}: {r['failed']}" for p, run in sent.items() for task, r in run.items() if "failed" in r]
    if options.quick and sent:
        print("\n".join(tokens.section({"tokens": sent})))
    print("\n".join([*failed, f"{len(failed)} failures, {time.monotonic() - began:.0f} s"]))
    return 1 if failed and options.quick else 0
