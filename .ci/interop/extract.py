#!/usr/bin/env python3
"""Takes the example clients out of the documents they are printed in: extract.py DOCUMENTS TARGET.

The documents are copies of web pages. In some of them every line stands behind a line number and a plus sign, and the
indentation is gone; for Python it is restored from the first words of each line. Nothing else is changed.
"""
import pathlib
import re
import sys

# First words of a line and how deep it stands; a line that fits none stands at the margin.
DEPTH = [
    (r"for line in", 1), (r"yield ", 2), (r"proc\.stdin", 1),
    (r"if event", 1), (r"delta = ", 2), (r"if delta", 2), (r"print\(delta", 3), (r"print\(\)", 2), (r"break", 2),
]


def lines_of(path):
    text = path.read_text(encoding="utf-8", errors="replace")
    lines = text.splitlines()
    if sum(line.startswith("+") for line in lines) > len(lines) // 4:
        lines = [re.sub(r"^\+ ?", "", line) for line in lines if not re.fullmatch(r"\d+", line)]
    return lines


def indented(lines):
    if any(line.startswith(" ") for line in lines):
        return lines
    out = []
    for line in lines:
        depth = next((depth for words, depth in DEPTH if re.match(words, line)), 0)
        out.append("    " * depth + line)
    return out


def cut(lines, first, last):
    """From the first line that fits `first` to the next one that fits `last`."""
    start = next((i for i, line in enumerate(lines) if re.match(first, line)), None)
    if start is None:
        return None
    end = next((i for i in range(start, len(lines)) if re.match(last, lines[i].strip())), None)
    return None if end is None else lines[start:end + 1]


def javascript(lines):
    found = cut(lines, r"(const|import) \{ spawn \}", r'process\.on\("SIGINT"')
    if found is None:
        return None
    rest = lines[lines.index(found[-1]) + 1:]
    return found + rest[:2]  # the abort and the closing bracket


def main():
    documents, target = map(pathlib.Path, sys.argv[1:3])
    count = 0
    for path in sorted(documents.iterdir()):
        lines = lines_of(path)
        name = path.stem.split("_")[0]
        python = cut(lines, r"import subprocess", r"break$")
        if python:
            (target / f"{name}.py").write_text("\n".join(indented(python)) + "\n")
            count += 1
        script = javascript(lines)
        if script:
            kind = "mjs" if script[0].startswith("import") else "cjs"
            (target / f"{name}.{kind}").write_text("\n".join(script) + "\n")
            count += 1
    if count < 5:
        sys.exit(f"only {count} clients found, there should be 5")


main()
