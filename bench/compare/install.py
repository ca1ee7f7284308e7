"""Installs the peers from npm. A peer that cannot be installed is reported with the reason; nothing is guessed."""
from __future__ import annotations

import glob
import json
import os
import platform
import re
import subprocess
from dataclasses import dataclass, field

NPM_TIMEOUT = 600
# A release can depend on packages that the registry does not have. Older releases are then tried, newest first.
OLDER_RELEASES = 8


@dataclass
class Request:
    """A peer that a run asks for: its package and the wanted version."""

    name: str
    kind: str
    package: str
    version: str = "latest"
    runtime: str = ""
    may_be_older: bool = False
    # Packages that only draw a terminal. Where npm does not have one, an empty package takes its place, and the page says so.
    only_terminal: tuple[str, ...] = ()


@dataclass
class Peer:
    """An installed peer, or the reason why it is missing."""

    name: str
    kind: str
    argv: list[str] = field(default_factory=list)
    version: str = ""
    wanted: str = ""
    paths: list[str] = field(default_factory=list)
    missing: str = ""
    note: str = ""


REQUESTS = [
    Request("pi", "pi", "@earendil-works/pi-coding-agent", "1.5.2", "node", may_be_older=True,
            only_terminal=("marked-cjk-friendly",)),
    Request("pi-0.74.2", "pi", "@earendil-works/pi-coding-agent", "0.74.2", "node"),
    Request("oh-my-pi", "omp", "@oh-my-pi/pi-coding-agent", "18.3.4", "bun", may_be_older=True),
    Request("codex", "codex", "@openai/codex"),
    Request("opencode", "opencode", "opencode-ai"),
]


def npm(args: list[str], cwd: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["npm", *args], cwd=cwd, capture_output=True, text=True, timeout=NPM_TIMEOUT, check=False)


def npm_error(result: subprocess.CompletedProcess[str]) -> str:
    """Returns the sentence of npm that says what went wrong, without addresses."""
    lines = [x.split("error", 1)[1].strip() for x in result.stderr.splitlines() if x.startswith("npm error")]
    lines = [x.removeprefix("notarget").removeprefix("404").strip() for x in lines]
    told = [x for x in lines if " " in x and not x.startswith(("code", "Not Found - GET", "A complete log"))]
    return re.sub(r"https?://\S+", "(address)", told[0] if told else f"npm ended with {result.returncode}")


def add_package(folder: str, package: str, version: str, empty: tuple[str, ...] = ()) -> str:
    """Installs one version into its own folder, with empty packages in the place of some; returns an empty string or the error."""
    os.makedirs(folder, exist_ok=True)
    manifest = os.path.join(folder, "package.json")
    if empty or not os.path.exists(manifest):
        for name in empty:
            os.makedirs(os.path.join(folder, "empty", name), exist_ok=True)
            with open(os.path.join(folder, "empty", name, "package.json"), "w", encoding="utf-8") as file:
                json.dump({"name": name, "version": "0.0.0", "type": "module", "main": "index.js"}, file)
            with open(os.path.join(folder, "empty", name, "index.js"), "w", encoding="utf-8") as file:
                file.write("export default {};\n")
        with open(manifest, "w", encoding="utf-8") as file:
            json.dump({"private": True, "overrides": {name: f"file:./empty/{name}" for name in empty}}, file)
    if installed_version(folder, package) == version:
        return ""
    try:
        result = npm(["install", "--no-audit", "--no-fund", "--loglevel=error", f"{package}@{version}"], folder)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"npm: {error}"
    return npm_error(result) if result.returncode else ""


def installed_version(folder: str, package: str) -> str:
    try:
        with open(os.path.join(folder, "node_modules", package, "package.json"), encoding="utf-8") as file:
            return str(json.load(file)["version"])
    except (OSError, KeyError, ValueError):
        return ""


def replaced_packages(folder: str) -> list[str]:
    """Returns the names of packages that empty ones replace."""
    try:
        with open(os.path.join(folder, "package.json"), encoding="utf-8") as file:
            return list(json.load(file).get("overrides") or {})
    except (OSError, ValueError):
        return []


def older_versions(package: str, below: str, cwd: str) -> list[str]:
    result = npm(["view", package, "versions", "--json", "--loglevel=error"], cwd)
    try:
        versions = [v for v in json.loads(result.stdout) if "-" not in v]
    except ValueError:
        return []
    return versions[: versions.index(below)][::-1][:OLDER_RELEASES] if below in versions else versions[::-1][:OLDER_RELEASES]


def runtime(root: str, name: str) -> tuple[str, str]:
    """Installs Node 22 or bun; returns the path of the program and an error."""
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    package, version = (f"node-linux-{machine}", "22") if name == "node" else ("bun", "latest")
    folder = os.path.join(root, name)
    found = program(folder, name, package)
    if not found:
        error = add_package(folder, package, version)
        found = program(folder, name, package)
        if not found:
            return "", f"{name}: {error or 'the package has no program'}"
    return found, ""


def program(folder: str, name: str, package: str) -> str:
    patterns = [f"{package}/bin/{name}", f"{package}/bin/{name}.exe", f"@oven/bun-linux-*/bin/{name}"]
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.join(folder, "node_modules", pattern))):
            if os.path.getsize(path) > 1 << 20:
                return path
    return ""


def entry(request: Request, folder: str) -> list[str]:
    """Returns the command line without options: the native program of the package, or its script."""
    modules = os.path.join(folder, "node_modules")
    native = {"codex": "@openai/codex-linux-*/vendor/*/bin/codex", "opencode": "opencode-linux-*/bin/opencode"}.get(request.kind)
    if native:
        found = sorted((p for p in glob.glob(os.path.join(modules, native)) if "baseline" not in p), key=len)
        return found[:1]
    with open(os.path.join(modules, request.package, "package.json"), encoding="utf-8") as file:
        commands = json.load(file)["bin"]
    script = commands if isinstance(commands, str) else next(iter(commands.values()))
    return [os.path.join(modules, request.package, script)]


def install(request: Request, root: str) -> Peer:
    """Installs a peer below `root`. `Peer.missing` says why there is no command line."""
    peer = Peer(request.name, request.kind, wanted=request.version)
    folder = os.path.join(root, request.name)
    try:
        error = "" if request.version == "latest" and installed_version(folder, request.package) else add_package(
            folder, request.package, request.version)
        absent = tuple(name for name in request.only_terminal if f"'{name}@" in error or f" {name}@" in error)
        if absent:
            error = add_package(folder, request.package, request.version, absent)
        if replaced_packages(folder):
            names = ", ".join(replaced_packages(folder))
            peer.note = f"npm does not have {names}; an empty package takes its place. Only the terminal uses it."
        if error and request.may_be_older:
            peer.note = f"npm cannot install {request.version} with its dependencies: {error}"
            before = installed_version(folder, request.package)
            for version in [before] if before else older_versions(request.package, request.version, folder):
                error = add_package(folder, request.package, version)
                if not error:
                    break
        if error:
            peer.missing = error
            return peer
        peer.version = installed_version(folder, request.package)
        prefix: list[str] = []
        if request.runtime:
            path, error = runtime(root, request.runtime)
            if error:
                peer.missing = error
                return peer
            prefix = [path]
        command = entry(request, folder)
    except (OSError, KeyError, ValueError, subprocess.SubprocessError) as problem:
        peer.missing = f"{type(problem).__name__}: {problem}"
        return peer
    if not command or not os.path.exists(command[0]):
        peer.missing = "the package has no program for this platform"
        return peer
    peer.argv = prefix + command
    peer.paths = [*prefix, os.path.join(folder, "node_modules")]
    return peer


def pinion(path: str, remark: str = "") -> Peer:
    """Describes the binary under test as a peer."""
    path = os.path.abspath(path)
    shown = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout.strip()
    return Peer("pinion", "pinion", [path], shown.removeprefix("pinion ").replace(",", ""), paths=[path], note=remark)


def floor(root: str) -> Peer:
    """Compiles the floor program."""
    peer = Peer("floor", "floor", version="C")
    path = os.path.join(root, "floor")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "floor.c")
    os.makedirs(root, exist_ok=True)
    try:
        result = subprocess.run(["cc", "-O2", "-o", path, source], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        peer.missing = f"cc: {error}"
        return peer
    if result.returncode:
        peer.missing = "cc: " + result.stderr.strip().splitlines()[0]
    peer.argv, peer.paths = [path], [path]
    return peer
