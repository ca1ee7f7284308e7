#!/usr/bin/env python3
"""Transcripts of newer agents than the one of the conformance kit, in the kit's scenarios.

    transcripts.py KIT record --agent CMD --into DIR [--only GLOB] [--jobs N] [--path-prepend DIR] [--settle]
    transcripts.py KIT pack DIR GOLDEN [--events]
    transcripts.py KIT verify GOLDEN --agent CMD [--only GLOB] [--jobs N] [--profile P] [--json FILE]

KIT is the folder with run.py and golden/. `record` runs an agent and keeps everything in DIR; `pack` reduces that to what a
comparison reads and writes one file. Only recording needs the other agent. `verify` compares another agent with such a file.
"""
import argparse
import concurrent.futures
import fnmatch
import gzip
import importlib
import json
import os
import re
import sys
from typing import Any

import patience

# Values that differ between two runs, or depend on the length of the agent's own prompt, with what takes their place.
VOLATILE = {"ttft": "<ms>", "duration": "<ms>", "wallTimeMs": "<ms>",
            "durationMs": "<ms>", "wall_time_seconds": "<s>", "estimatedTokensAfter": "<tokens>"}

# Parts of texts that are not compared if the list beside the golden names them: patterns, and what takes the place of a match.
TEXTS = {
    # Before long texts become a hash: the number of lines in the notices and errors of `read`.
    "line-counts": [(re.compile(r"\[\d+( more lines in file\. Use offset=)"), r"[<lines>\1"),
                    (re.compile(r"(\[Showing lines \d+-\d+ of )\d+((?: \([^)]*\))?\. Use offset=)"), r"\1<lines>\2"),
                    (re.compile(r"(^Offset \d+ is beyond end of file \()\d+( lines total\))"), r"\1<lines>\2")],
    # What Pinion adds below an error of `edit`.
    "edit-hints": [(re.compile(r"\nThey begin in lines [^\n]*\.$"), ""),
                   (re.compile(r"\nThe nearest text is in lines? .*", re.DOTALL), "")],
}


# Requests to the client, for its tools and its URIs.
OF_CLIENT = ("host_tool_call", "host_tool_cancel", "host_uri_request", "host_uri_cancel")


def without_parts(text, names):
    for name in names:
        for pattern, replacement in TEXTS[name]:
            text = pattern.sub(replacement, text)
    return text


def load_kit(path):
    sys.path.insert(0, path)
    kit: Any = importlib.import_module("run")
    patience.install(kit)
    kit.Normaliser = normaliser(kit)
    # The kit forgives texts of the JavaScript engine of Node. Those of Bun's engine name minified variables, and the checks of its own
    # functions name their parameters.
    bun = ("undefined is not an object \\(evaluating '", "The \"[^\"]*\" property must be of type ")
    kit.JS_ERROR = re.compile("|".join([kit.JS_ERROR.pattern, *(f"^{text}" for text in bun)]))
    return kit


def normaliser(kit):
    """The kit's normaliser, which knows 0.74.2 only, with the values that newer versions add."""
    base: Any = kit.Normaliser

    class Normaliser(base):
        def transcript(self):
            # Long texts become a hash below, so that pieces have to be joined before.
            self.run.lines = whole_outputs(self.run.lines)
            return super().transcript()

        def value(self, v, key=None):
            if isinstance(v, str):
                v = without_parts(v, ["line-counts"])
            if isinstance(v, dict) and v.get("role") == "system" and "sections" in v:
                # Prompt texts and tool descriptions are the agent's own: that there are some is compared, not what they say.
                v = dict(v, content="", sections="<prompt>" if v["sections"] else v["sections"])
                if "toolsAdded" in v:
                    v["toolsAdded"] = [tool.get("name") for tool in v["toolsAdded"]]
            return super().value(v, key)

    return Normaliser


def whole_outputs(lines):
    """The pieces of the output of one shell command as one line: how they are cut is free."""
    out: list[Any] = []
    last: Any = None
    for row in lines:
        direction, text, *rest = row
        if direction != "out":
            out.append(row)
            continue
        piece = json.loads(text) if text.startswith('{"type":"bash_execution_update"') else None
        if piece and last and last[1].get("id") == piece.get("id"):
            last[1]["delta"] += piece["delta"]
            out[last[0]] = (direction, json.dumps(last[1]), *rest)
            continue
        last = (len(out), piece) if piece else None
        out.append(row)
    return out


def adapt(scenario, settles):
    """The scenario for agents whose message_update has the delta and no message. A pause follows an `abort` that no step waits for:
    without a run, pi answers it before or after the next command, as the two lines arrive. With `settles`, a pause also follows the end of
    a run: oh-my-pi writes `session_settled` a moment later, and not at all if the next run has begun by then."""
    steps = []
    for step in scenario["steps"]:
        if step.get("send") == {"type": "abort"}:
            steps += [step, {"sleep": 0.5}]
            continue
        wait = step.get("wait")
        if isinstance(wait, dict) and wait.get("type") == "message_update" and "message" in wait:
            wait = {"type": "message_update", "assistantMessageEvent": wait["message"]}
        steps.append(dict(step, wait=wait) if "wait" in step else step)
        if settles and wait == {"type": "agent_end"}:
            steps.append({"sleep": 0.4})
    return dict(scenario, steps=steps)


def scenario_files(kit):
    """Name and file of every scenario: those of the kit, and those beside this script."""
    golden = os.path.join(kit, "golden")
    for name in os.listdir(golden):
        yield name, os.path.join(golden, name, "scenario.json")
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scenarios")
    for name in os.listdir(own):
        yield name.removesuffix(".json"), os.path.join(own, name)


def scenarios(kit, only, settles=False):
    """Names and scenarios. With `settles` they are for oh-my-pi, which alone has those of the name `omp-`."""
    for name, path in sorted(scenario_files(kit)):
        if name.startswith("omp-") and not settles:
            continue
        if os.path.isfile(path) and (not only or any(fnmatch.fnmatch(name, glob) for glob in only)):
            with open(path, encoding="utf-8") as file:
                yield name, adapt(json.load(file), settles)


def options(args):
    env = dict(kv.split("=", 1) for kv in args.env or [])
    return {"path": args.path_prepend or [], "env": env, "setup_cmd": args.setup_cmd, "keep": False, "slow": args.slow,
            "chunk_delay": 0.015}


def record(run, args):
    def one(item):
        name, scenario = item
        doc = run.run_scenario(scenario, args.agent, options(args))
        run.save(doc, os.path.join(args.into, name), scenario)
        return name, doc

    with concurrent.futures.ThreadPoolExecutor(max_workers=args.jobs) as pool:
        for name, doc in pool.map(one, list(scenarios(args.kit, args.only, args.settle))):
            print(f"{name:44} {doc['wall']:4.1f}s {'; '.join(doc['result']['failures'])}", flush=True)
    return 0


def reduced(run, doc):
    """What a comparison reads: chunks joined, no volatile values, requests by meaning, no input."""
    rows = [row for row in joined(doc["transcript"]) if "out" in row or "out_raw" in row]
    return steady(dict(doc, transcript=rows, llm=[run.semantic_request(r) for r in doc["llm"]]))


def left_out(golden):
    """Names of the members, events, files and parts of texts that are not compared, from the list beside the golden, and whether the
    texts of tools are not."""
    members: list[str] = []
    files: list[str] = []
    parts: list[str] = []
    has_own_tools = False
    events = ["extension_ui_request:setWidget"]
    path = golden.replace(".jsonl.gz", ".left-out")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                kind, _, rest = line.partition(" ")
                if kind in ("member", "event"):
                    (members if kind == "member" else events).append(rest.split()[0])
                if kind in ("file", "text"):
                    (files if kind == "file" else parts).append(rest.split()[0])
                has_own_tools = has_own_tools or kind == "texts"
    return members, events, has_own_tools, files, parts


def extra_members(golden):
    """Members that Pinion may have beyond those of the other agent, from the list beside the golden. One of the other agent is compared."""
    path = golden.replace(".jsonl.gz", ".left-out")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [line.split()[1] for line in file if line.startswith("extra ")]


def accept_extra(kit, members):
    """Accepts these members of Pinion where the other agent has none, as the kit does for those of the superset."""
    load = kit.load_policy

    def load_policy():
        policy = load()
        for profile in policy.values():
            if profile["loose"]:
                profile["ignore_extra_keys"] = profile["ignore_extra_keys"] + members
        return policy

    kit.load_policy = load_policy


def without_texts(value):
    """The value without what tools answered: that they did, and whether they failed, stays. Without the agent's own words to the model,
    which oh-my-pi gives the role `developer`; that there is such a message stays. Without the words of providers in `prompt_result`, which
    are those of the SDK, without opaque cursors, and without ids of requests to the client, which number requests that are left out,
    too."""
    if isinstance(value, list):
        return [without_texts(v) for v in value]
    if not isinstance(value, dict):
        return value
    value = {k: without_texts(v) for k, v in value.items()}
    kind = value.get("type")
    if kind == "prompt_result" and "provider" in value.get("error", {}):
        value["error"]["message"] = "<text>"
    if "nextCursor" in value:
        value["nextCursor"] = "<cursor>"
    if kind in OF_CLIENT or kind == "extension_ui_request":
        value.update({key: "<id>" for key in ("id", "targetId") if key in value})
    if value.get("role") in ("toolResult", "developer"):
        value["content"] = "<text>"
    if value.get("type") == "tool_execution_end" and isinstance(value.get("result"), dict):
        value["result"]["content"] = "<text>"
    return value


def kind_of(row):
    return row["out"].get("type") if isinstance(row.get("out"), dict) else None


def is_answer(row):
    return kind_of(row) == "message_end" and row["out"]["message"].get("role") == "assistant"


def place(rows, at):
    """Where the row belongs in the order of oh-my-pi's work. It writes requests to the client at once and events a moment later, so the
    start of a tool call comes before the request of the call. The outcome of a prompt comes right behind the run, before responses of
    that moment, but not before the response to the prompt itself. A retry has succeeded when its answer ends."""
    row, kind, to = rows[at].get("out"), kind_of(rows[at]), at
    if kind == "tool_execution_start":
        return at - (at > 0 and kind_of(rows[at - 1]) in OF_CLIENT)
    if kind in ("prompt_result", "session_settled"):
        while to > 0 and kind_of(rows[to - 1]) == "response" and rows[to - 1]["out"].get("id") != row.get("id"):
            to -= 1
        return to if to > 0 and kind_of(rows[to - 1]) in ("agent_end", "prompt_result", "session_settled") else at
    if kind == "auto_retry_end" and row.get("success"):
        began = max((n for n in range(at) if kind_of(rows[n]) == "auto_retry_start"), default=at)
        return next((n + 1 for n in range(began, at) if is_answer(rows[n])), at)
    return at


def in_order(rows):
    rows = list(rows)
    for kinds in (("auto_retry_end",), ("tool_execution_start", "prompt_result", "session_settled")):
        for at in range(len(rows)):
            if kind_of(rows[at]) in kinds:
                rows.insert(place(rows, at), rows.pop(at))
    return rows


def without_part(value, parts):
    if isinstance(value, str):
        return without_parts(value, parts)
    if isinstance(value, list):
        return [without_part(v, parts) for v in value]
    return {k: without_part(v, parts) for k, v in value.items()} if isinstance(value, dict) else value


def without(run, doc, members, events, has_own_tools, files, parts):
    def is_left_out(line):
        kind = line.get("type") if isinstance(line, dict) else None
        method = line.get("method") if kind else None
        return kind in events or f"{kind}:{method}" in events

    rows = [row for row in doc["transcript"] if not is_left_out(row.get("out"))]
    rows = in_order(without_texts(rows)) if has_own_tools else rows
    kept = {name: text for name, text in doc["result"].get("files", {}).items() if name.rsplit("/", 1)[-1] not in files}
    doc = dict(doc, transcript=run.scrub(rows, members) if members else rows, result=dict(doc["result"], files=kept))
    return dict(doc, **{k: without_part(doc[k], parts) for k in ("transcript", "llm", "sessions")}) if parts else doc


def is_built_in(value):
    """A command of an extension that is part of the agent: which there are is no matter of the protocol."""
    source = value.get("sourceInfo") if isinstance(value, dict) else None
    return isinstance(source, dict) and source.get("source") == "builtin"


def steady(value, key=None):
    if isinstance(value, dict):
        return {k: steady(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [steady(v) for v in value if not is_built_in(v)]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return VOLATILE[key] if is_number and key in VOLATILE else value


def joined(rows):
    """Chunks of one block, or of the output of one command, as one line: how they are cut is free."""
    out, last = [], None
    for row in rows:
        line = row.get("out")
        kind = line.get("type") if isinstance(line, dict) else None
        if kind == "message_update":
            event = line.get("assistantMessageEvent") or {}
            chunk = event
            mark = (event.get("type"), event.get("contentIndex"))
        else:
            chunk = line if kind == "bash_execution_update" else None
            mark = (kind, line.get("id")) if chunk else None
        if chunk is not None and isinstance(chunk.get("delta"), str):
            if last and last[0] == mark:
                # The newest chunk repeats the answer so far, if any does.
                chunk["delta"] = last[1]["delta"] + chunk["delta"]
                out[-1] = row
            else:
                out.append(row)
            last = (mark, chunk)
            continue
        if "out" in row or "out_raw" in row:
            last = None
        out.append(row)
    return out


def pack(run, args):
    """Adds the recorded scenarios to the file, in place of those of the same name."""
    before = load_golden(args.golden) if os.path.exists(args.golden) else {}
    with gzip.GzipFile(args.golden, "wb", mtime=0) as out:
        for name, _ in scenarios(args.kit, None, args.events):
            folder = os.path.join(args.dir, name)
            if os.path.isdir(folder):
                doc = without(run, reduced(run, run.load(folder)), *left_out(args.golden))
                if args.events and doc["result"]["failures"]:
                    print(f"left out: {name}: {'; '.join(doc['result']['failures'])}")
                    continue
                if args.events:
                    doc["result"]["stderr"] = ""
                    doc.update(llm=[], sessions=[], sections=["events"])
                doc.pop("wall", None)
            else:
                doc = before.get(name)
            if doc:
                out.write((json.dumps({"name": name, **doc}, ensure_ascii=True, separators=(",", ":")) + "\n").encode())
    print(f"{args.golden}: {os.path.getsize(args.golden)} bytes")
    return 0


def load_golden(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {row.pop("name"): row for row in rows}


def verify(run, args):
    goldens = load_golden(args.golden)
    skip = left_out(args.golden)
    accept_extra(run, extra_members(args.golden))
    settles = skip[2]
    todo = [(name, scenario) for name, scenario in scenarios(args.kit, args.only, settles) if name in goldens]

    def one(item):
        name, scenario = item
        got = run.run_scenario(scenario, args.agent, options(args))
        if args.out:
            run.save(got, os.path.join(args.out, name), scenario)
        golden, got = (without(run, doc, *skip) for doc in (goldens[name], reduced(run, got)))
        differences = run.compare(golden, got, scenario, args.profile)
        return name, scenario, {k: v for k, v in differences.items() if k in golden.get("sections", differences)}

    report = []
    with concurrent.futures.ThreadPoolExecutor(max_workers=args.jobs) as pool:
        for name, scenario, differences in pool.map(one, todo):
            equal = not any(differences.values())
            advisory = (scenario.get("compare") or {}).get("advisory")
            report.append({"name": name, "ok": equal, "advisory": advisory, "diffs": differences})
            state = "ok  " if equal else "info" if advisory else "FAIL"
            print(f"{state} {name} ", flush=True)
            for section, lines in differences.items():
                for line in lines[:args.max_diff]:
                    print(f"       {line}")
                if len(lines) > args.max_diff:
                    print(f"       ... {len(lines) - args.max_diff} more in {section}")
    judged = [row for row in report if row["ok"] or not row["advisory"]]
    same = sum(row["ok"] for row in judged)
    print(f"\n{len(judged)} scenarios judged, {same} equal, {len(judged) - same} differ (profile {args.profile})")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"scenarios": report}, file)
    return 0 if same == len(judged) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kit")
    commands = parser.add_subparsers(dest="command", required=True)

    def agent(sub):
        sub.add_argument("--agent", required=True)
        sub.add_argument("--only", action="append")
        sub.add_argument("--jobs", type=int, default=2)
        sub.add_argument("--env", action="append")
        sub.add_argument("--setup-cmd")
        sub.add_argument("--slow", type=float, default=1.0)
        sub.add_argument("--path-prepend", action="append")

    sub = commands.add_parser("record")
    agent(sub)
    sub.add_argument("--into", required=True)
    sub.add_argument("--settle", action="store_true", help="for oh-my-pi: its own scenarios, and a pause after each run")
    sub.set_defaults(run=record)
    sub = commands.add_parser("pack")
    sub.add_argument("dir")
    sub.add_argument("--events", action="store_true", help="keep the events only: prompts, tools and session files are the agent's own")
    sub.add_argument("golden")
    sub.set_defaults(run=pack)
    sub = commands.add_parser("verify")
    sub.add_argument("golden")
    agent(sub)
    sub.add_argument("--profile", choices=("superset", "compat", "exact"), default="superset")
    sub.add_argument("--json")
    sub.add_argument("--out")
    sub.add_argument("--max-diff", type=int, default=12)
    sub.set_defaults(run=verify)
    args = parser.parse_args()
    return args.run(load_kit(args.kit), args)


if __name__ == "__main__":
    sys.exit(main())
