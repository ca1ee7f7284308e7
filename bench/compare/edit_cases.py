"""Edit attempts made of real changes: the differences between two releases of a crate that the lock file names.

An attempt has a file, an old and a new text, and the contents that the file may have afterwards. No accepted content means that the tool
must refuse. The attempts depend on the lock file and on the seed alone.
"""
from __future__ import annotations

import difflib
import glob
import itertools
import os
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

SEED = 20
MAX_FILE = 60_000
MAX_REGION = 24
CONTEXT = 2
CURLY = str.maketrans({"'": "\u2019", '"': "\u201c"})
STRAIGHT = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})


@dataclass
class Case:
    """An attempt. `accepted` is empty if the tool must refuse it. `head` and `tail` surround the old text in the file."""

    category: str
    source: str
    before: str
    old: str
    new: str
    accepted: list[str]
    head: str = ""
    tail: str = ""


@dataclass
class Change:
    """A change of a file: the lines before it, the old and the new lines, and the lines after it."""

    source: str
    head: list[str]
    old: list[str]
    new: list[str]
    tail: list[str]

    def file(self, lines: list[str]) -> str:
        return "\n".join([*self.head, *lines, *self.tail])


def plain(text: str) -> str:
    """Removes blanks and typographic quotes, which lenient tools ignore."""
    return re.sub(r"[ \t\r]+", "", text.translate(STRAIGHT))


def crates(lock: str) -> Iterator[tuple[str, list[str]]]:
    """Yields the crates that a lock file has in several versions, with the folders of their sources."""
    with open(lock, encoding="utf-8") as file:
        found = re.findall(r'name = "([^"]+)"\nversion = "([^"]+)"', file.read())
    home = os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo"))
    for name, group in itertools.groupby(found, key=lambda pair: pair[0]):
        folders = []
        for _, version in group:
            folders += sorted(glob.glob(os.path.join(glob.escape(home), "registry/src/*", f"{name}-{version}")))[:1]
        if len(folders) > 1 and all(permissive(x) for x in folders):
            yield name, folders


def permissive(folder: str) -> bool:
    with open(folder + "/Cargo.toml", encoding="utf-8") as file:
        licence = re.search(r'^license = "([^"]*)"', file.read(), re.MULTILINE)
    return bool(licence and re.search(r"\b(MIT|Apache-2\.0)\b", licence.group(1)))


def read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read(MAX_FILE + 1)
    except (OSError, UnicodeDecodeError):
        return None
    return text if len(text) <= MAX_FILE and "\r" not in text and "\t" not in text else None


def changes(lock: str) -> list[Change]:
    """Returns the changed regions, with two lines of context, whose old text occurs once in its file."""
    out: list[Change] = []
    for name, folders in crates(lock):
        for older, newer in itertools.pairwise(folders):
            for path in sorted(glob.glob(older + "/src/**/*.rs", recursive=True)):
                part = os.path.relpath(path, older)
                before, after = read(path), read(os.path.join(newer, part))
                if before is not None and after is not None and before != after:
                    out += regions(f"{name}/{part}", before.split("\n"), after.split("\n"))
    return out


def regions(source: str, before: list[str], after: list[str]) -> Iterator[Change]:
    squeezed = "\n".join(plain(x) for x in before)
    for group in difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(CONTEXT):
        first, last = group[0], group[-1]
        old, new = before[first[1]: last[2]], after[first[3]: last[4]]
        text, fresh = plain("\n".join(old)), plain("\n".join(new))
        if not 3 <= len(old) <= MAX_REGION or len(new) > 2 * MAX_REGION or len(text) < 40 or text == fresh or not fresh:
            continue
        if squeezed.count(text) == 1 and old[0].strip() and old[-1].strip() and new[0].strip() and new[-1].strip():
            yield Change(source, before[: first[1]], old, new, before[last[2]:])


def exact(change: Change, _: random.Random) -> Case | None:
    return simple("exact", change, change.old, change.new)


def simple(category: str, change: Change, old: list[str], new: list[str]) -> Case:
    return Case(category, change.source, change.file(change.old), "\n".join(old), "\n".join(new), [change.file(change.new)],
                "\n".join(change.head), "\n".join(change.tail))


def indentation(change: Change, chance: random.Random) -> Case | None:
    """The model writes the text four blanks too far to the left or to the right."""
    lines = [x for x in change.old + change.new if x.strip()]
    depth = min(len(x) - len(x.lstrip(" ")) for x in lines)
    if chance.random() < 0.5 and depth >= 4:
        return simple("indentation", change, [x[4:] for x in change.old], [x[4:] for x in change.new])
    return simple("indentation", change, *([("    " + x) if x.strip() else x for x in part] for part in (change.old, change.new)))


def tabbed(lines: list[str]) -> list[str]:
    return [re.sub(r"^(?: {4})+", lambda found: "\t" * (len(found.group()) // 4), x) for x in lines]


def tabs(change: Change, chance: random.Random) -> Case | None:
    """The file has blanks and the model writes tabs, or the other way round."""
    if tabbed(change.old) == change.old:
        return None
    if chance.random() < 0.5:
        return simple("tabs", change, tabbed(change.old), tabbed(change.new))
    whole = Change(change.source, tabbed(change.head), tabbed(change.old), tabbed(change.new), tabbed(change.tail))
    return simple("tabs", whole, change.old, change.new)


def crlf(change: Change, _: random.Random) -> Case | None:
    """The file has Windows line ends and the model writes Unix ones."""
    case = simple("CRLF", change, change.old, change.new)
    case.before, case.accepted = case.before.replace("\n", "\r\n"), [x.replace("\n", "\r\n") for x in case.accepted]
    case.head, case.tail = case.head.replace("\n", "\r\n"), case.tail.replace("\n", "\r\n")
    return case


def quotes(change: Change, chance: random.Random) -> Case | None:
    """The model writes typographic quotes where the file has straight ones, or the other way round."""
    text = "\n".join(change.old)
    if not re.search("['\"]", text):
        return None
    if chance.random() < 0.5:
        case = simple("quotes", change, change.old, change.new)
        case.old = case.old.translate(CURLY)
        return case
    curly = Change(change.source, change.head, [x.translate(CURLY) for x in change.old], change.new, change.tail)
    return simple("quotes", curly, change.old, change.new)


def trailing(change: Change, chance: random.Random) -> Case | None:
    """The file has blanks at the ends of lines and the model writes none, or the other way round."""
    padded = [x + " " * chance.choice((0, 1, 2)) if x.strip() else x for x in change.old]
    if padded == change.old:
        return None
    if chance.random() < 0.5:
        return simple("trailing blanks", change, padded, change.new)
    return simple("trailing blanks", Change(change.source, change.head, padded, change.new, change.tail), change.old, change.new)


def stale(change: Change, chance: random.Random) -> Case | None:
    """A line of context has changed in the file since the model read it. Applying the edit would undo that change."""
    kept = [i for i in (*range(CONTEXT), *range(-CONTEXT, 0)) if re.search(r"[a-z_]{3,}", change.old[i]) and change.old[i] == change.new[i]]
    if not kept:
        return None
    at = chance.choice(kept)
    words = list(re.finditer(r"[a-z_]{3,}", change.old[at]))
    word = chance.choice(words)
    moved_on = change.old[:]
    moved_on[at] = change.old[at][: word.start()] + word.group() + "_v2" + change.old[at][word.end():]
    case = simple("stale context", change, change.old, change.new)
    case.before, case.accepted = change.file(moved_on), []
    return case


def several(change: Change, chance: random.Random) -> Case | None:
    """The old text occurs more than once: the tool cannot know which place is meant."""
    place = chance.randrange(len(change.tail) + 1)
    tail = [*change.tail[:place], *change.old, *change.tail[place:]]
    case = simple("several matches", change, change.old, change.new)
    case.before, case.accepted = "\n".join([*change.head, *change.old, *tail]), []
    return case


def moved(change: Change, _: random.Random) -> Case | None:
    """The text is at another place of the file than when the model read it."""
    rest = [*change.head, *change.tail]
    place = len(rest) // 3 if len(change.head) > len(rest) // 2 else 2 * len(rest) // 3
    return simple("moved text", Change(change.source, rest[:place], change.old, change.new, rest[place:]), change.old, change.new)


MAKERS: dict[str, Callable[[Change, random.Random], Case | None]] = {
    "exact": exact, "indentation": indentation, "tabs": tabs, "CRLF": crlf, "quotes": quotes, "trailing blanks": trailing,
    "stale context": stale, "several matches": several, "moved text": moved,
}


def cases(lock: str, count: int) -> list[Case]:
    """Returns `count` attempts, the same number of each category. Crates take turns, so that no large one prevails."""
    chance = random.Random(SEED)
    by_crate: dict[str, list[Change]] = {}
    for change in changes(lock):
        by_crate.setdefault(change.source.split("/")[0], []).append(change)
    for group in by_crate.values():
        chance.shuffle(group)
    mixed = [c for row in itertools.zip_longest(*by_crate.values()) for c in row if c is not None]
    out: list[Case] = []
    for number, (category, make) in enumerate(MAKERS.items()):
        wanted = (count * (number + 1)) // len(MAKERS) - (count * number) // len(MAKERS)
        made = []
        for change in mixed[number * 7:] + mixed[: number * 7]:
            case = make(change, chance)
            if case is not None and unambiguous(case):
                made.append(case)
            if len(made) == wanted:
                break
        if len(made) < wanted:
            raise ValueError(f"only {len(made)} attempts of {wanted} for {category}: fetch the sources of the lock file with `cargo fetch`")
        out += made
    return out


def unambiguous(case: Case) -> bool:
    """Returns true if the old text, read leniently, has as many places in the file as the category says."""
    places = plain(case.before).count(plain(case.old))
    return places == {"stale context": 0, "several matches": 2}.get(case.category, 1)
