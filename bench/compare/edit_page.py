"""The page about edit attempts: tables, a chart and the raw counts."""
from __future__ import annotations

import collections
import json
import os
from html import escape
from typing import Any

PAGE = "docs/project/edit-figures.md"
FOLDER = "docs/project/edit-figures"
APPLIED, DIFFERS, REFUSED, WRONG, SILENT = OUTCOMES = (
    "applied", "applied, blanks or quotes differ", "refused", "applied wrongly", "no change reported as success")
COLOURS = {APPLIED: "#1a7f37", DIFFERS: "#9ccc65", REFUSED: "#b8c0c8", WRONG: "#cf222e", SILENT: "#8250df"}
MEANING = {
    "exact": "The old text is in the file once, byte for byte.",
    "indentation": "Old and new text are four blanks too far to the left or to the right.",
    "tabs": "Tabs for blanks in the texts, or in the file.",
    "CRLF": "The file has Windows line ends, the texts Unix ones.",
    "quotes": "Typographic quotes for straight ones in the old text, or in the file.",
    "trailing blanks": "Blanks at the ends of lines of the old text, or of the file.",
    "stale context": "A line of the old text has changed in the file. Must be refused.",
    "several matches": "The old text is in the file twice. Must be refused.",
    "moved text": "The old text is at another place of the file than before.",
}

Rows = dict[str, list[dict[str, Any]]]


def count(rows: list[dict[str, Any]], category: str) -> collections.Counter[str]:
    return collections.Counter(r["outcome"] for r in rows if category in (r["category"], "all"))


def table(rows: Rows) -> list[str]:
    """Returns the table with four numbers in a cell: applied, with differing blanks, refused, wrong."""
    names = list(rows)
    out = ["| attempts | " + " | ".join(names) + " |", "|---|" + "--:|" * len(names)]
    for category in [*MEANING, "all"]:
        cells = []
        for name in names:
            found = count(rows[name], category)
            wrong = found[WRONG] + found[SILENT]
            cells.append(f"{found[APPLIED]} / {found[DIFFERS]} / {found[REFUSED]} / " + (f"**{wrong}**" if wrong else "0"))
        size = count(rows[names[0]], category).total() if names else 0
        out.append(f"| {category} ({size:,}) | " + " | ".join(cells) + " |")
    cells = []
    for name in names:
        refused = [r for r in rows[name] if r["outcome"] == REFUSED]
        cells.append(f"{sum(r['helpful'] for r in refused):,} of {len(refused):,}")
    return [*out, "| refusals that help | " + " | ".join(cells) + " |"]


def chart(rows: Rows) -> str:
    """Returns an SVG with one stacked bar for each agent."""
    width, left, row, top = 720, 110, 28, 60
    height = top + row * len(rows) + 12
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" role="img">',
           "<title>Outcomes of the edit attempts</title>", f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
    x = left
    for outcome in OUTCOMES:
        out.append(f'<rect x="{x}" y="18" width="12" height="12" fill="{COLOURS[outcome]}"/>')
        out.append(f'<text x="{x + 17}" y="28" font-size="11" fill="#24292f">{escape(outcome)}</text>')
        x += 28 + 6 * len(outcome)
    for number, (name, own) in enumerate(rows.items()):
        y = top + row * number
        out.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end" fill="#24292f">{escape(name)}</text>')
        found, at = count(own, "all"), float(left)
        for outcome in OUTCOMES:
            size = (width - left - 16) * found[outcome] / max(1, found.total())
            if size:
                out.append(f'<rect x="{at:.1f}" y="{y}" width="{size:.1f}" height="20" fill="{COLOURS[outcome]}"/>')
            at += size
    return "\n".join([*out, "</svg>", ""])


def examples(rows: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """Returns the first text of each category and outcome that is not an application."""
    out: dict[str, dict[str, str]] = {}
    for r in rows:
        if "text" in r:
            out.setdefault(r["category"], {}).setdefault(r["outcome"], r["text"])
    return out


def write(root: str, result: dict[str, Any]) -> None:
    """Writes page, chart and counts below the folder of the project."""
    rows: Rows = result["rows"]
    about = result["about"]
    os.makedirs(os.path.join(root, FOLDER), exist_ok=True)
    with open(os.path.join(root, FOLDER, "outcomes.svg"), "w", encoding="utf-8") as file:
        file.write(chart(rows))
    raw = {name: {"version": result["versions"][name], "counts": {c: count(own, c) for c in MEANING}, "texts": examples(own)}
           for name, own in rows.items()}
    with open(os.path.join(root, FOLDER, "edits.json"), "w", encoding="utf-8") as file:
        json.dump({"about": about, "agents": raw}, file, indent=1)
        file.write("\n")
    with open(os.path.join(root, PAGE), "w", encoding="utf-8") as file:
        file.write("\n".join([*introduction(about, result["notes"]), *table(rows), "", *ending(result["missing"])]) + "\n")


def introduction(about: dict[str, Any], notes: dict[str, str]) -> list[str]:
    versions = [f"| {name} | {note} |" for name, note in notes.items()]
    return [
        "# Edit tools compared", "",
        "<!-- Written by `bench/edits --docs`; edit bench/compare/edit_page.py instead. -->", "",
        f"{about['count']:,} edit attempts, the same for all agents, made of {about['changes']:,} real changes between two releases of",
        f"{about['crates']} crates under the MIT or Apache licence. A scripted model sends them through the edit tool of each agent,",
        f"25 files in one turn. Afterwards the files are compared with the expected contents. Measured on {about['date']}.", "",
        "| agent | version |", "|---|---|", *versions, "",
        "| attempts | texts and file |", "|---|---|", *(f"| {name} | {text} |" for name, text in MEANING.items()), "",
        "## Results", "",
        "A cell has four numbers:", "",
        "1. applied: the file has the expected content, byte for byte",
        "2. applied, but blanks or quotes of the changed lines differ from the expected content",
        "3. refused: an error, and the file is unchanged",
        "4. applied wrongly: any other change of the file, or success reported for an unchanged file", "",
        "A refusal helps if it has a line number, a number of matches, or a line of the file that the model did not send.", "",
        "![Outcomes of the edit attempts](edit-figures/outcomes.svg)", "",
    ]


def ending(missing: dict[str, str]) -> list[str]:
    gaps = [f"* {name} is missing: {reason}" for name, reason in missing.items()]
    gaps += [""] if gaps else []
    return [
        *gaps,
        "How to read it:", "",
        "* oh-my-pi runs with its `replace` variant of the tool. Its default takes line numbers of an earlier read instead of an old text.",
        "* opencode reads each file first, because its tool demands it.",
        "* codex gets the attempts as patches for `apply_patch`, without line numbers. It changes the first of several matches.",
        "* A tool that applies a text with stale context undoes a change that the model has not seen.", "",
        "[edits.json](edit-figures/edits.json) has the counts, and the first text that the model got for each kind of attempt.", "",
        "## Repeat it", "", "```text", "cargo fetch", "cargo build --profile dist -p pinion",
        "bench/edits --pinion target/dist/pinion --docs", "```", "", "The attempts depend on `Cargo.lock` and on a fixed seed.",
    ]
