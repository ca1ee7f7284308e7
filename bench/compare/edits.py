"""Sends the same edit attempts through the edit tools of all agents and judges the files afterwards."""
from __future__ import annotations

import argparse
import collections
import glob
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from typing import Any

from . import edit_cases, edit_page, install
from .agents import Agent, Codex, Model, OhMyPi, Opencode, Refused, make
from .edit_cases import Case, plain

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BATCH = 25
BATCH_TIMEOUT = 240.0


class OhMyPiReplace(OhMyPi):
    """oh-my-pi with the variant of its edit tool that takes old and new texts. Its default takes line numbers of an earlier read."""

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "PI_EDIT_VARIANT": "replace"}


def call(agent: Agent, path: str, case: Case) -> dict[str, Any]:
    """Returns the call of the agent's edit tool."""
    whole = os.path.join(agent.cwd, path)
    if isinstance(agent, Codex):
        body = [*("-" + x for x in case.old.split("\n")), *("+" + x for x in case.new.split("\n"))]
        patch = ["*** Begin Patch", f"*** Update File: {path}", "@@", *body, "*** End Patch"]
        return agent.bash("apply_patch <<'PATCH'\n" + "\n".join(patch) + "\nPATCH")
    if isinstance(agent, Opencode):
        return {"name": "edit", "arguments": {"filePath": whole, "oldString": case.old, "newString": case.new}}
    if agent.peer.kind == "omp":
        return {"name": "edit", "arguments": {"path": path, "old_string": case.old, "new_string": case.new, "i": "edit"}}
    return {"name": "edit", "arguments": {"path": path, "edits": [{"oldText": case.old, "newText": case.new}]}}


def read_call(agent: Agent, path: str) -> dict[str, Any] | None:
    """opencode edits only files that were read before in the same session."""
    if isinstance(agent, Opencode):
        return {"name": "read", "arguments": {"filePath": os.path.join(agent.cwd, path)}}
    return None


def results(folder: str) -> list[tuple[str, bool]]:
    """Returns text and error mark of the tool results at the end of the last request."""
    with open(max(glob.glob(folder + "/*.json")), encoding="utf-8") as file:
        body = json.load(file)
    found: list[tuple[str, bool]] = []
    for message in body.get("messages", []):
        if isinstance(message["content"], list):
            blocks = [b for b in message["content"] if b["type"] == "tool_result"]
            if blocks:
                found = [(text_of(b.get("content", "")), bool(b.get("is_error"))) for b in blocks]
    for item in body.get("input", []):
        if item.get("type") == "function_call_output":
            text = text_of(item["output"])
            found.append((text, not re.search(r"[Ee]xit(ed with)? code:? 0\b", text)))
    return found


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(x.get("text", "") for x in content)


def judge(case: Case, after: str, error: bool) -> str:
    if after == case.before:
        return edit_page.REFUSED if error else edit_page.SILENT
    if after in case.accepted:
        return edit_page.APPLIED
    if any(plain(after) == plain(x) for x in case.accepted) and after.startswith(case.head) and after.endswith(case.tail):
        return edit_page.DIFFERS
    return edit_page.WRONG


def helpful(case: Case, text: str) -> bool:
    """Returns true if a refusal has a line number, a number of matches, or a line of the file."""
    if re.search(r"\blines? \d+|\b\d+ (occurrences|matches|times|places)|:\d+\b", text):
        return True
    return any(len(x.strip()) >= 12 and x.strip() in text for x in case.before.split("\n") if x.strip() not in case.old)


def run_batch(agent: Agent, model: Model, cases: list[Case], number: int) -> list[dict[str, Any]]:
    """Lets the agent edit one file for each case, all in one turn."""
    paths = []
    for index, case in enumerate(cases):
        path = f"b{number:03}/f{index:02}.rs"
        os.makedirs(os.path.join(agent.cwd, os.path.dirname(path)), exist_ok=True)
        with open(os.path.join(agent.cwd, path), "w", encoding="utf-8", newline="") as file:
            file.write(case.before)
        paths.append(path)
    dump = f"{agent.folder}/requests-{number}"
    os.makedirs(dump)
    reads = [r for r in (read_call(agent, p) for p in paths) if r]
    steps: list[dict[str, Any]] = [{"calls": reads}] if reads else []
    model.script(*steps, {"calls": [call(agent, p, c) for p, c in zip(paths, cases)]}, {"text": 1}, dump=dump)
    agent.fresh()
    agent.prompt("Edit the files.", BATCH_TIMEOUT)
    told = results(dump)[-len(cases):]
    if len(told) != len(cases):
        raise Refused(f"{len(told)} results instead of {len(cases)}")
    out = []
    for path, case, (text, error) in zip(paths, cases, told):
        with open(os.path.join(agent.cwd, path), encoding="utf-8", newline="") as file:
            after = file.read()
        outcome = judge(case, after, error)
        row: dict[str, Any] = {"category": case.category, "source": case.source, "outcome": outcome}
        if outcome not in (edit_page.APPLIED, edit_page.DIFFERS):
            row.update(text=text.replace(agent.cwd + "/", "")[:400], helpful=helpful(case, text))
        out.append(row)
    shutil.rmtree(dump)
    return out


def run_peer(peer: install.Peer, model: Model, cases: list[Case]) -> list[dict[str, Any]]:
    folder = tempfile.mkdtemp(prefix="pinion-edits-")
    agent: Agent = OhMyPiReplace(peer, folder, model.port) if peer.kind == "omp" else make(peer, folder, model)
    out: list[dict[str, Any]] = []
    try:
        agent.start()
        for number, first in enumerate(range(0, len(cases), BATCH)):
            out += run_batch(agent, model, cases[first: first + BATCH], number)
        return out
    finally:
        agent.stop()
        shutil.rmtree(folder, ignore_errors=True)


def describe(cases: list[Case], lock: str) -> dict[str, Any]:
    changes = edit_cases.changes(lock)
    return {"count": len(cases), "changes": len(changes), "crates": len({c.source.split("/")[0] for c in changes}),
            "date": time.strftime("%Y-%m-%d", time.gmtime())}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/edits", description=__doc__)
    parser.add_argument("--pinion", default="target/dist/pinion", help="binary to measure (default: %(default)s)")
    parser.add_argument("--peers", default="", help="names of peers, comma-separated (default: all)")
    parser.add_argument("--count", type=int, default=2000, help="attempts (default: %(default)s)")
    # Agents run in folders of their own, where a relative path would name another place.
    parser.add_argument("--install-dir", type=os.path.abspath, default=os.path.join(ROOT, "target/bench/peers"),
                        help="folder for the packages of the peers")
    parser.add_argument("--lock", default=os.path.join(ROOT, "Cargo.lock"), help="lock file that names the crates")
    parser.add_argument("--out", default=os.path.join(ROOT, "target/bench/edits.json"), help="file for the results")
    parser.add_argument("--docs", action="store_true", help="write the page of the documentation")
    parser.add_argument("--report", action="store_true", help="measure nothing; read the results of --out again")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    if options.report:
        with open(options.out, encoding="utf-8") as file:
            edit_page.write(ROOT, json.load(file))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    cases = edit_cases.cases(options.lock, options.count)
    wanted = set(filter(None, options.peers.split(",")))
    peers = [install.pinion(options.pinion)]
    peers += [install.install(r, options.install_dir) for r in install.REQUESTS if not wanted or r.name in wanted]
    rows: dict[str, list[dict[str, Any]]] = {}
    missing: dict[str, str] = {}
    model = Model()
    try:
        for peer in peers:
            began = time.monotonic()
            try:
                if peer.missing:
                    raise Refused(peer.missing)
                rows[peer.name] = run_peer(peer, model, cases)
            except (Refused, TimeoutError, EOFError, OSError, ValueError, KeyError, IndexError) as error:
                missing[peer.name] = f"{type(error).__name__}: {error}"[:300]
            print(f"{peer.name} {peer.version}: {missing.get(peer.name, '')} {time.monotonic() - began:.0f} s", flush=True)
    finally:
        model.stop()
    notes = {p.name: (p.version or p.wanted) + (f" ({p.note})" if p.note else "") for p in peers}
    result = {"about": describe(cases, options.lock), "versions": {p.name: p.version for p in peers}, "notes": notes, "missing": missing,
              "rows": rows}
    os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=0)
    print("\n".join(edit_page.table(rows)))
    if options.docs:
        edit_page.write(ROOT, result)
    own = collections.Counter(r["outcome"] for r in rows.get("pinion", []))
    return 1 if own[edit_page.WRONG] or own[edit_page.SILENT] or "pinion" in missing else 0
