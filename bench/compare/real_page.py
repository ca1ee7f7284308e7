"""The page about tasks with a small real model: tables and the raw results."""
from __future__ import annotations

import json
import math
import os
import statistics
from typing import Any

PAGE = "docs/project/real-model-figures.md"
RAW = "docs/project/real-model-figures.json"
KINDS = {"command": "the prompt names a command", "answer": "its output is asked for", "request": "plain words"}


def solved(rows: list[dict[str, Any]], kind: str = "") -> str:
    """Returns the number of solved tasks of each seed, and their sum."""
    rows = [r for r in rows if kind in ("", r["kind"])]
    seeds = sorted({r["seed"] for r in rows})
    each = [sum(r["solved"] for r in rows if r["seed"] == seed) for seed in seeds]
    return f"{sum(each)} of {len(rows)} <small>({', '.join(map(str, each))})</small>"


def unequal(rows: dict[str, list[dict[str, Any]]]) -> tuple[int, int]:
    """Returns how many attempts only the first agent solved, and how many only the second."""
    first, second = list(rows.values())[:2]
    other = {(r["seed"], r["task"]): r["solved"] for r in second}
    pairs = [(r["solved"], other[(r["seed"], r["task"])]) for r in first]
    return sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)


def chance(ours: int, theirs: int) -> float:
    """Returns the probability of a difference of this size or more between two equal agents (two-sided sign test)."""
    count, fewer = ours + theirs, min(ours, theirs)
    return min(1.0, 2 * sum(math.comb(count, k) for k in range(fewer + 1)) / 2**count)


def tables(result: dict[str, Any]) -> list[str]:
    rows: dict[str, list[dict[str, Any]]] = result["rows"]
    names = list(rows)

    def line(title: str, cell: Any) -> str:
        return f"| {title} | " + " | ".join(str(cell(rows[n])) for n in names) + " |"

    out = ["| | " + " | ".join(names) + " |", "|---|" + "--:|" * len(names)]
    out += [line(f"solved: {text}", lambda r, k=kind: solved(r, k)) for kind, text in KINDS.items()]
    out += [line("solved: all", solved),
            line("requests", lambda r: f"{sum(x['requests'] for x in r):,}"),
            line("tool calls", lambda r: f"{sum(x['calls'] for x in r):,}"),
            line("tokens in, all attempts", lambda r: f"{sum(x['input'] for x in r):,}"),
            line("tokens out, all attempts", lambda r: f"{sum(x['output'] for x in r):,}"),
            line("time of a prompt, median", lambda r: f"{statistics.median(x.get('seconds', 0) for x in r):.2f} s"),
            line("time of all prompts", lambda r: f"{sum(x.get('seconds', 0) for x in r):,.0f} s"),
            line("ended by the limit or an error", lambda r: sum("ended" in x for x in r))]
    return out


def by_task(result: dict[str, Any]) -> list[str]:
    rows: dict[str, list[dict[str, Any]]] = result["rows"]
    out = ["| task | kind | " + " | ".join(rows) + " |", "|---|---|" + "--:|" * len(rows)]
    for task in dict.fromkeys(r["task"] for r in next(iter(rows.values()))):
        cells, kind = [], ""
        for found in rows.values():
            own = [r for r in found if r["task"] == task]
            kind = own[0]["kind"]
            cells.append(f"{sum(r['solved'] for r in own)} of {len(own)}")
        out.append(f"| {task} | {kind} | " + " | ".join(cells) + " |")
    return out


def write(root: str, result: dict[str, Any]) -> None:
    about, versions = result["about"], result["versions"]
    agents = ", ".join(f"{name} {version}" for name, version in versions.items())
    ours, theirs = unequal(result["rows"])
    names, count = list(result["rows"]), len(by_task(result)) - 2
    drawn = "Each run has another seed of the server" if about["temperature"] else (
        "The model always takes the most likely word; runs differ in the random name of the working directory, which stands in the prompt")
    text = f"""# Tasks with a small real model

`bench/real --docs` wrote this page and [the raw results](real-model-figures.json). Each agent solves {count} small tasks with
checkable results with the same model: {about["model"]}, served by llama.cpp on the {about["cores"]} cores of the machine, context
of {about["context"]:,} tokens, temperature {about["temperature"]}. Each task runs {about["seeds"]} times.
{drawn}.
Each attempt has a new server, a new process and an empty directory. No GPU was available.

A model of 135 million parameters cannot plan, and with the agents' own system prompts it calls no tool at all. Both therefore run with
`--tools bash --system-prompt "Use bash."`, and the chat template shows three calls of `bash`. The page says whether two agents are
equal with the same model, not what an agent can do.

{about["date"]}; {agents}.

{chr(10).join(tables(result))}

In brackets: the number of each run. The server counts the tokens, cached ones included.
{ours} attempts were solved by {names[0]} only and {theirs} by {names[1]} only. If both were equal, a difference of this size or more would
come up with a probability of {chance(ours, theirs):.2f} (sign test).

{chr(10).join(by_task(result))}
"""
    with open(os.path.join(root, PAGE), "w", encoding="utf-8") as file:
        file.write(text)
    os.makedirs(os.path.dirname(os.path.join(root, RAW)), exist_ok=True)
    with open(os.path.join(root, RAW), "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
