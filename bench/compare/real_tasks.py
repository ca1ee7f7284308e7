"""Small tasks for a small model: files at the start, a prompt, and a check of the files or of the answer afterwards."""
from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

NAMES = "mia\nben\nzoe\nali\n"


@dataclass
class Work:
    """What a run left: the folder of the project and the text of the last answer."""

    folder: str
    answer: str

    def file(self, path: str) -> str | None:
        """Returns the text of a file, or None without one."""
        try:
            with open(os.path.join(self.folder, path), encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return None

    def has(self, path: str) -> bool:
        return os.path.lexists(os.path.join(self.folder, path))

    def words(self, path: str) -> list[str]:
        return (self.file(path) or "").split()

    def says(self, *words: str) -> bool:
        return all(word in self.answer for word in words)


@dataclass
class Task:
    """One task. `kind` is `command` (the prompt names it), `answer` (its output is asked for) or `request` (plain words)."""

    name: str
    kind: str
    prompt: str
    check: Callable[[Work], bool]
    files: dict[str, str] = field(default_factory=dict)


def executable(work: Work) -> bool:
    return os.access(os.path.join(work.folder, "run.sh"), os.X_OK)


TASKS = [
    Task("echo", "command", "Run: echo hello > greeting.txt", lambda w: w.words("greeting.txt") == ["hello"]),
    Task("directory", "command", "Run: mkdir -p src/lib", lambda w: os.path.isdir(w.folder + "/src/lib")),
    Task("touch", "command", "Run: touch empty.txt", lambda w: w.file("empty.txt") == ""),
    Task("copy", "command", "Run: cp a.txt b.txt", lambda w: w.file("b.txt") == "alpha\n" == w.file("a.txt"), {"a.txt": "alpha\n"}),
    Task("move", "command", "Run: mv a.txt c.txt", lambda w: w.file("c.txt") == "alpha\n" and not w.has("a.txt"), {"a.txt": "alpha\n"}),
    Task("remove", "command", "Run: rm old.txt", lambda w: not w.has("old.txt") and w.has("new.txt"), {"old.txt": "x\n", "new.txt": "y\n"}),
    Task("sort", "command", "Run: sort names.txt > sorted.txt",
         lambda w: w.words("sorted.txt") == sorted(NAMES.split()), {"names.txt": NAMES}),
    Task("count", "command", "Run: wc -l < names.txt > count.txt", lambda w: w.words("count.txt") == ["4"], {"names.txt": NAMES}),
    Task("replace", "command", "Run: sed -i s/red/blue/ colour.txt", lambda w: w.words("colour.txt") == ["blue"], {"colour.txt": "red\n"}),
    Task("append", "command", "Run: echo two >> list.txt", lambda w: w.words("list.txt") == ["one", "two"], {"list.txt": "one\n"}),
    Task("mode", "command", "Run: chmod 755 run.sh", executable, {"run.sh": "true\n"}),
    Task("link", "command", "Run: ln -s a.txt link.txt", lambda w: os.path.islink(w.folder + "/link.txt"), {"a.txt": "alpha\n"}),
    Task("cat", "answer", "Run: cat word.txt", lambda w: w.says("pineapple"), {"word.txt": "pineapple\n"}),
    Task("words", "answer", "Run: wc -w story.txt", lambda w: w.says("7"), {"story.txt": "a fox ran over the green hill\n"}),
    Task("sum", "answer", "Run: expr 17 + 25", lambda w: w.says("42")),
    Task("head", "answer", "Run: head -n 1 names.txt", lambda w: w.says("mia"), {"names.txt": NAMES}),
    Task("grep", "answer", "Run: grep error log.txt", lambda w: w.says("disk full"), {"log.txt": "start\nerror: disk full\nend\n"}),
    Task("list", "answer", "Run: ls", lambda w: w.says("kiwi.txt", "plum.txt"), {"kiwi.txt": "", "plum.txt": ""}),
    Task("path", "answer", "Run: basename /usr/share/lemon", lambda w: w.says("lemon") and not w.says("/usr/share")),
    Task("sequence", "answer", "Run: seq 7 9", lambda w: w.says("7", "8", "9")),
    Task("make a file", "request", "Create an empty file named todo.txt.", lambda w: w.has("todo.txt")),
    Task("make a directory", "request", "Make a directory named build.", lambda w: os.path.isdir(w.folder + "/build")),
    Task("delete a file", "request", "Delete the file old.txt.", lambda w: not w.has("old.txt"), {"old.txt": "x\n"}),
    Task("rename a file", "request", "Rename draft.txt to final.txt.",
         lambda w: w.file("final.txt") == "text\n" and not w.has("draft.txt"), {"draft.txt": "text\n"}),
    Task("write a word", "request", "Write the word ready to the file state.txt.", lambda w: w.words("state.txt") == ["ready"]),
    Task("read a file", "request", "What is in the file secret.txt?", lambda w: w.says("tangerine"), {"secret.txt": "tangerine\n"}),
    Task("list files", "request", "List the files in this directory.",
         lambda w: w.says("kiwi.txt", "plum.txt"), {"kiwi.txt": "", "plum.txt": ""}),
    Task("count lines", "request", "How many lines does names.txt have?", lambda w: w.says("4"), {"names.txt": NAMES}),
    Task("copy to a directory", "request", "Copy a.txt to the directory backup.", lambda w: w.file("backup/a.txt") == "alpha\n",
         {"a.txt": "alpha\n", "backup/.keep": ""}),
    Task("add a line", "request", "Add the line three to list.txt.",
         lambda w: w.words("list.txt") == ["one", "two", "three"], {"list.txt": "one\ntwo\n"}),
]
