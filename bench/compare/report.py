"""Writes the page of the book, its charts and the raw results."""
from __future__ import annotations

import json
import os
import statistics
from typing import Any

from .plot import Panel, chart

# Rows of the table of speed: measurement, value, title, factor for display, unit.
ROWS = [
    ("start", "cpu_s", "start: CPU to the first response", 1000, "ms"),
    ("start", "wall_s", "start: time to the first response", 1000, "ms"),
    ("start", "first_answer_cpu_s", "start: CPU to the end of the first answer", 1000, "ms"),
    ("start", "pss_mb", "idle memory, 1 agent (PSS)", 1, "MB"),
    ("fleet", "pss_mb", "idle memory, {fleet} agents (PSS)", 1, "MB"),
    ("fleet", "idle_cpu_ms_per_s", "idle CPU, {fleet} agents, per second", 1, "ms"),
    ("stream_short", "cpu_s", "answer of {short_deltas} deltas: CPU", 1000, "ms"),
    ("stream", "cpu_s", "answer of {deltas} deltas: CPU", 1000, "ms"),
    ("stream", "written_mb", "answer of {deltas} deltas: bytes to the client", 1, "MB"),
    ("stream_delta", "cpu_s", "the same in delta form: CPU", 1000, "ms"),
    ("arguments", "cpu_s", "`write` call of {argument_deltas} argument deltas: CPU", 1000, "ms"),
    ("turns", "cpu_ms_per_turn", "{turns} `bash` turns: CPU a turn", 1, "ms"),
    ("turns", "first_tenth_ms", "{turns} `bash` turns: time of a turn, first tenth", 1, "ms"),
    ("turns", "last_tenth_ms", "{turns} `bash` turns: time of a turn, last tenth", 1, "ms"),
    ("output", "cpu_s", "command prints {output}: CPU", 1000, "ms"),
    ("output", "peak_mb", "command prints {output}: peak memory", 1, "MB"),
    ("open_session", "open_cpu_s", "open a session of {session_bytes}: CPU", 1000, "ms"),
    ("open_session", "open_peak_mb", "open a session of {session_bytes}: peak memory", 1, "MB"),
    ("open_session", "read_cpu_s", "then read all its messages: CPU", 1000, "ms"),
    ("list_sessions", "cpu_s", "list {sessions} sessions: CPU", 1000, "ms"),
    ("list_sessions", "again_cpu_s", "the same again, with the cache of the listing: CPU", 1000, "ms"),
    ("abort_stream", "ms", "abort an answer: time", 1, "ms"),
    ("abort_bash", "ms", "abort a command: time", 1, "ms"),
    ("acp", "initialize_ms", "ACP: start to the response of `initialize`, time", 1, "ms"),
    ("acp", "new_ms", "ACP: `session/new`, time", 1, "ms"),
    ("acp", "new_cpu_ms", "ACP: `session/new`, CPU", 1, "ms"),
    ("acp_mcp", "ms", "ACP: `session/new` with ten MCP servers that never answer, time", 1, "ms"),
    ("acp", "delta_cpu_us", "ACP: one delta of {short_deltas}, CPU", 1, "us"),
    ("acp", "own_delta_cpu_us", "The agent's own protocol: one delta of the same answer, CPU", 1, "us"),
    ("web", "kb_per_client", "web server: memory of an idle client of {web_clients}", 1, "kB"),
    ("web", "cpu_s", "web server: answer of 500 deltas in 5 s to {web_clients} clients, CPU", 1000, "ms"),
    ("size", "mb", "installed", 1, "MB"),
]
PANELS = [("start", "cpu_s", "Start: CPU, ms", 1000), ("start", "pss_mb", "Idle memory: PSS, MB", 1),
          ("stream", "cpu_s", "Long answer: CPU, ms", 1000), ("arguments", "cpu_s", "Long write call: CPU, ms", 1000),
          ("turns", "cpu_ms_per_turn", "bash turn: CPU, ms", 1), ("output", "cpu_s", "Large output: CPU, ms", 1000),
          ("open_session", "open_cpu_s", "Open a large session: CPU, ms", 1000), ("list_sessions", "cpu_s", "List sessions: CPU, ms", 1000),
          ("abort_stream", "ms", "Abort an answer: ms", 1), ("size", "mb", "Installed: MB", 1)]


# How far the ratios of two runs may be apart to count as equal.
CLOSE = 1.2


def number(value: float) -> str:
    """Returns three significant digits, without an exponent."""
    if value == 0:
        return "0"
    digits = max(0, 2 - int(f"{abs(value):e}".split("e")[1]))
    return f"{value:,.{min(digits, 3)}f}"


def samples(results: dict[str, Any], measurement: str, key: str, peer: str) -> list[float]:
    rounds = results["speed"].get(measurement, {}).get(peer, [])
    return [r[key] for r in rounds if key in r]


def cell(results: dict[str, Any], measurement: str, key: str, peer: str, factor: float) -> str:
    found = [x * factor for x in samples(results, measurement, key, peer)]
    if found:
        text = number(statistics.median(found))
        return text if len(found) == 1 else f"{text} <small>({number(min(found))}-{number(max(found))})</small>"
    for entry in results["speed"].get(measurement, {}).get(peer, []):
        if "failed" in entry:
            return "failed"
    return "-"


def amount(size: int) -> str:
    return f"{size / 1e6:g} MB"


def titles(sizes: dict[str, Any]) -> dict[str, str]:
    shown = {k: f"{v:,}" for k, v in sizes.items()}
    return {**shown, "output": amount(sizes["output"]), "session_bytes": amount(sizes["session_bytes"])}


def speed_tables(results: dict[str, Any]) -> list[str]:
    peers = [p["name"] for p in results["peers"] if not p["missing"]]
    others = [p for p in peers if p not in ("pinion", "floor")]
    names = titles(results["sizes"])
    out = ["| work | | " + " | ".join(peers) + " |", "|---|---|" + "--:|" * len(peers)]
    ratios = ["| work | " + " | ".join(f"{p} / pinion" for p in others) + " | pinion / floor |", "|---|" + "--:|" * (len(others) + 1)]
    for measurement, key, form, factor, unit in ROWS:
        if measurement not in results["speed"] or not samples(results, measurement, key, "pinion"):
            continue
        title = form.format(**names)
        out.append(f"| {title} | {unit} | " + " | ".join(cell(results, measurement, key, p, factor) for p in peers) + " |")
        pairs = [(p, "pinion") for p in others] + [("pinion", "floor")]
        row = [ratio(samples(results, measurement, key, a), samples(results, measurement, key, b)) for a, b in pairs]
        if any(x != "-" for x in row):
            ratios.append(f"| {title} | " + " | ".join(row) + " |")
    return [*out, "", "## Ratios", "", "The ratio of the medians; in brackets the smallest and the largest ratio within a round.", "",
            *ratios]


def ratio(above: list[float], below: list[float]) -> str:
    """Returns the ratio of medians and the range of the ratios of single rounds."""
    if not above or not below or not statistics.median(below):
        return "-"
    middle = number(statistics.median(above) / statistics.median(below))
    single = [a / b for a, b in zip(above, below) if b]
    if len(single) < 2:
        return middle
    return f"{middle} <small>({number(min(single))}-{number(max(single))})</small>"


def again(results: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Compares the ratios of medians with those of another run: which are further apart than `CLOSE`."""
    names = titles(results["sizes"])
    apart, count = [], 0
    for measurement, key, form, _, _ in ROWS:
        for peer in [p["name"] for p in results["peers"] if p["name"] not in ("pinion", "floor")]:
            found = [medians(run, measurement, key, peer) for run in (results, other)]
            if None in found:
                continue
            count += 1
            first, second = (x for x in found if x)
            if max(first / second, second / first) > CLOSE:
                apart.append({"work": form.format(**names), "agent": peer, "first": second, "second": first})
    return {"date": other["date"], "cpu": other["machine"]["cpu"], "count": count, "apart": apart}


def medians(results: dict[str, Any], measurement: str, key: str, peer: str) -> float | None:
    above, below = samples(results, measurement, key, peer), samples(results, measurement, key, "pinion")
    return statistics.median(above) / statistics.median(below) if above and below and statistics.median(below) else None


def again_section(compared: dict[str, Any]) -> list[str]:
    apart = sorted(compared["apart"], key=lambda x: -max(x["first"] / x["second"], x["second"] / x["first"]))
    rows = [f"| {x['work']} | {x['agent']} | {number(x['first'])} | {number(x['second'])} |" for x in apart]
    table = ["", "| work | agent / pinion | the other run | this run |", "|---|---|--:|--:|", *rows] if rows else []
    return ["## The same command twice", "",
            f"{compared['count'] - len(apart)} of {compared['count']} ratios are within 20 % of those of another run of the same command "
            f"on {compared['date']} ({compared['cpu']}). {'The others:' if rows else ''}".rstrip(), *table, ""]


def failures(results: dict[str, Any]) -> list[str]:
    out = []
    for measurement, peers in results["speed"].items():
        for peer, rounds in peers.items():
            reasons = sorted({r[k] for r in rounds for k in ("failed", "none") if k in r})
            out += [f"* `{measurement}`, {peer}: {reason}" for reason in reasons]
    return out


def speed_chart(results: dict[str, Any]) -> str:
    peers = [p["name"] for p in results["peers"] if not p["missing"]]
    panels = []
    for measurement, key, title, factor in PANELS:
        bars: list[tuple[str, float | None, str]] = []
        for peer in peers:
            found = samples(results, measurement, key, peer)
            value = statistics.median(found) * factor if found else None
            bars.append((peer, value, number(value) if value is not None else cell(results, measurement, key, peer, 1)))
        if any(v for _, v, _ in bars):
            panels.append(Panel(title, bars))
    return chart("Pinion and other agents, less is better", panels)


def peer_lines(results: dict[str, Any]) -> list[str]:
    out = ["| agent | version | note |", "|---|---|---|"]
    for peer in results["peers"]:
        note = f"missing: {peer['missing']}" if peer["missing"] else peer["note"]
        out.append(f"| {peer['name']} | {peer['version'] or '-'} | {note} |")
    return out


INTRODUCTION = """# Comparison with other agents

`bench/run` wrote this page, its charts and [the raw results](figures.json). It installs the agents from npm and runs them in turns
against the same scripted model on one machine. [Benchmarks](../benchmarks.md) has the figures of Pinion alone.

{idle} CPU time and memory vary less than times; compare the ratios.
CPU is user and system time of the whole process tree. Memory is proportional (PSS) or peak resident memory of the whole tree; for Pinion
that includes its guardian processes.
Pinion is a build of the `release` profile, not the stripped `dist` build of the packages. A cell is the median of the rounds, with
the smallest and the largest value in brackets. A cell without brackets was measured once.
`floor` is a C program that only does the input and output of the work: it reads the stream, copies each delta once and starts `bash`.
"""
REPEAT = """## Repeat it

```text
cargo build --release -p pinion
bench/run --pinion target/release/pinion --rounds {rounds} --tokens
```

The command needs Python 3.10, npm and a C compiler, about 3 GB in `target/bench` and {minutes} minutes. `bench/run --quick` checks
the program itself with small amounts and writes nothing to the book. `bench/README.md` describes each measurement.
"""


def machine_line(results: dict[str, Any]) -> str:
    machine = results["machine"]
    return (f"{results['date']}; {machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB, Linux {machine['kernel']}; "
            f"rounds: {results['rounds']}; load average {machine['load_before']} before and {machine['load_after']} after.")


def page(results: dict[str, Any], extra: list[str]) -> str:
    notes = [f"* {note}" for note in results.get("notes", [])]
    # A load of half a core or more is that of a machine that others use.
    idle = "The machine was idle when the run began." if results["machine"]["load_before"] < 0.5 else "The machine was not idle."
    text = [INTRODUCTION.format(idle=idle), machine_line(results), "", *notes, "", *peer_lines(results), "", "## Speed and memory", "",
            "![CPU time, memory and size of each agent](../images/compare-speed.svg)", "", *speed_tables(results), ""]
    missing = failures(results)
    if missing:
        text += ["## Without a figure", "", *missing, ""]
    if results.get("again"):
        text += again_section(results["again"])
    text += extra
    text.append(REPEAT.format(rounds=results["rounds"], minutes=max(1, round(results["seconds"] / 60))))
    return "\n".join(text)


def write(results: dict[str, Any], book: str, extra: list[str], charts: dict[str, str]) -> None:
    """Writes the page, the charts and the raw results below the folder of the book."""
    os.makedirs(book + "/project", exist_ok=True)
    os.makedirs(book + "/images", exist_ok=True)
    with open(book + "/project/figures.json", "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1, sort_keys=True)
        file.write("\n")
    for name, text in {"compare-speed.svg": speed_chart(results), **charts}.items():
        with open(f"{book}/images/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    with open(book + "/project/figures.md", "w", encoding="utf-8") as file:
        file.write(page(results, extra))
