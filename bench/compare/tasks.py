"""Twenty scripted tasks, and how each agent's tools carry out their steps. A scripted model has no choice: all agents do the same work."""
from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from .agents import Agent

PARTS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")
FUNCTIONS = 30
# The old text of an edit that every tool must refuse.
NO_MATCH = "    return value * 999"
# Prints 45 kB: a few of these give a context that all agents agree to compact.
FILLER = "seq {}00000 {}06400 | paste -s -d ' ' | fold -w 150"


@dataclass
class Step:
    """One step: `kind` is read, edit, write or bash. `line` is the line number of `old`."""

    kind: str
    path: str = ""
    old: str = ""
    new: str = ""
    line: int = 0
    first: int = 0
    count: int = 0


@dataclass
class Task:
    """Prompts with their steps. After all but the last prompt, the agent compacts its context."""

    name: str
    prompts: list[list[Step]] = field(default_factory=list)


def read(path: str, first: int = 0, count: int = 0) -> Step:
    return Step("read", path, first=first, count=count)


def edit(path: str, old: str, new: str, line: int) -> Step:
    return Step("edit", path, old, new, line)


def write(path: str, text: str) -> Step:
    return Step("write", path, new=text)


def bash(command: str) -> Step:
    return Step("bash", new=command)


def project(folder: str) -> None:
    """Writes the project that every task starts from. Line 5 + 5n of a module is the body of function n."""
    os.makedirs(folder, exist_ok=True)
    for part in PARTS:
        lines = [f'"""Functions of {part}."""', "", ""]
        for number in range(FUNCTIONS):
            lines += [f"def {part}_{number}(value):", f"    return value + {number}", "", f"# Function {number} of {part} ends here.", ""]
        with open(f"{folder}/{part}.py", "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    with open(f"{folder}/test_alpha.py", "w", encoding="utf-8") as file:
        file.write("import unittest\n\nimport alpha\n\n\nclass Test(unittest.TestCase):\n    def test_three(self):\n"
                   "        self.assertEqual(alpha.alpha_3(1), 4)\n\n\nif __name__ == '__main__':\n    unittest.main()\n")


def body(part: str, number: int, new: str) -> Step:
    """Replaces the body of a function."""
    return edit(f"{part}.py", f"def {part}_{number}(value):\n    return value + {number}", f"def {part}_{number}(value):\n    return {new}",
                4 + 5 * number)


def tasks() -> list[Task]:
    test = bash("python3 -B -m unittest -q 2>&1 | grep -v Ran")
    changes = [s for p in PARTS[:3] for s in (read(f"{p}.py", 20, 20), body(p, 5, "5 + value"))]
    script = "print(sum(range(100)))\n"
    return [Task(name, prompts) for name, prompts in [
        ("read a file", [[read("alpha.py")]]),
        ("read parts of a file", [[read("beta.py", 1, 20), read("beta.py", 61, 20), read("beta.py", 121, 20)]]),
        ("read three files", [[read("alpha.py"), read("beta.py"), read("gamma.py")]]),
        ("edit a function", [[read("alpha.py"), body("alpha", 3, "3 + value")]]),
        ("edit two functions", [[read("beta.py"), body("beta", 2, "2 + value"), body("beta", 9, "9 + value")]]),
        ("write a file", [[write("new.py", script)]]),
        ("write and run a file", [[write("new.py", script), bash("python3 new.py")]]),
        ("run tests", [[test]]),
        ("mend a test", [[bash("sed -i 's/value + 3$/value - 3/' alpha.py"), test, read("alpha.py", 15, 10),
                          edit("alpha.py", "    return value - 3", "    return value + 3", 20), test]]),
        ("search text", [[bash("grep -rn 'value + 7' --include=*.py .")]]),
        ("search and read", [[bash("grep -rn 'def gamma_11' --include=*.py ."), read("gamma.py", 50, 20)]]),
        ("find files", [[bash("find . -name '*.py' | sort")]]),
        ("long output", [[bash("seq 1 40000")]]),
        ("one long line", [[bash("head -c 200000 /dev/zero | tr '\\0' x")]]),
        ("failing command", [[bash("echo wrong >&2; exit 3"), bash("true")]]),
        ("edit without a match", [[read("delta.py"), edit("delta.py", NO_MATCH, "    return 0", 5),
                                    body("delta", 1, "1 + value")]]),
        ("missing file", [[read("missing.py"), bash("ls")]]),
        ("change several files", [[bash("grep -ln 'value + 5$' *.py"), *changes, test]]),
        ("fifteen commands", [[bash(f"sed -n {n}p alpha.py") for n in range(1, 16)]]),
        ("compaction", [[bash(FILLER.format(n + 1, n + 1)) for n in range(4)], [read("delta.py")]]),
    ]]


def call(agent: Agent, step: Step) -> dict[str, Any]:
    """Returns the tool call that carries out a step with the tools of an agent."""
    kind = agent.peer.kind
    if step.kind == "bash":
        return agent.bash(step.new)
    if kind == "codex":
        return codex_call(agent, step)
    if step.kind == "write":
        return agent.write_file(step.path, step.new) or {}
    if kind == "opencode":
        path = os.path.join(agent.cwd, step.path)
        if step.kind == "edit":
            return {"name": "edit", "arguments": {"filePath": path, "oldString": step.old, "newString": step.new}}
        window = {"offset": step.first, "limit": step.count} if step.count else {}
        return {"name": "read", "arguments": {"filePath": path, **window}}
    if kind == "omp":
        return oh_my_pi_call(step)
    if step.kind == "edit":
        return {"name": "edit", "arguments": {"path": step.path, "edits": [{"oldText": step.old, "newText": step.new}]}}
    window = {"offset": step.first, "limit": step.count} if step.count else {}
    return {"name": "read", "arguments": {"path": step.path, **window}}


def codex_call(agent: Agent, step: Step) -> dict[str, Any]:
    """codex reads with the shell and edits with a patch."""
    if step.kind == "read":
        return agent.bash(f"sed -n {step.first},{step.first + step.count - 1}p {step.path}" if step.count else f"cat {step.path}")
    if step.kind == "write":
        change = f"*** Add File: {step.path}\n" + "".join(f"+{x}\n" for x in step.new.splitlines())
    else:
        lines = [f"-{x}\n" for x in step.old.split("\n")] + [f"+{x}\n" for x in step.new.split("\n")]
        change = f"*** Update File: {step.path}\n@@\n" + "".join(lines)
    return agent.bash(f"apply_patch <<'PATCH'\n*** Begin Patch\n{change}*** End Patch\nPATCH")


def oh_my_pi_call(step: Step) -> dict[str, Any]:
    """oh-my-pi edits numbered lines of a snapshot; `fill` takes its tag from the latest tool result."""
    if step.kind == "read":
        return {"name": "read", "arguments": {"i": "read", "path": f"{step.path}:{step.first}+{step.count}" if step.count else step.path}}
    last = step.line + len(step.old.split("\n")) - 1
    rows = "".join(f"+{x}\n" for x in step.new.split("\n"))
    return {"name": "edit", "arguments": {"i": "edit", "input": f"[{step.path}#FILL]\nPUT {step.line}.={last}:\n{rows}"},
            "fill": rf"\[{step.path}#([0-9A-F]{{4}})\]"}
