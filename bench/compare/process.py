"""Child processes and what they cost: CPU time of a process tree, memory, output lines."""
from __future__ import annotations

import contextlib
import fcntl
import http.client
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable

TICKS = os.sysconf("SC_CLK_TCK")
F_SETPIPE_SZ = 1031
# Lines up to this size are kept whole. Of longer ones the first and last bytes are kept.
WHOLE_LINE = 1 << 16
LINE_END = 4096


class Meter:
    """CPU seconds of a process tree: a cgroup where one can be made, else the times of /proc with reaped children."""

    serial = 0

    def __init__(self) -> None:
        self.folder = ""
        for root, usage in (("/sys/fs/cgroup/cpuacct", "cpuacct.usage"), ("/sys/fs/cgroup", "cpu.stat")):
            if not os.path.exists(os.path.join(root, usage if usage != "cpu.stat" else "cgroup.controllers")):
                continue
            Meter.serial += 1
            folder = f"{root}/pinion-bench-{os.getpid()}-{Meter.serial}"
            with contextlib.suppress(OSError):
                os.mkdir(folder)
                self.folder, self.usage = folder, os.path.join(folder, usage)
                return

    def join(self) -> None:
        """Moves the calling process into the group; runs in the child before `exec`."""
        if self.folder:
            with open(self.folder + "/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(os.getpid()))

    def processes(self, first: int) -> list[int]:
        if self.folder:
            with contextlib.suppress(OSError), open(self.folder + "/cgroup.procs", encoding="ascii") as file:
                return [int(x) for x in file.read().split()]
        return descendants(first)

    def seconds(self, first: int) -> float:
        if not self.folder:
            return sum(process_seconds(p) for p in descendants(first))
        with open(self.usage, encoding="ascii") as file:
            text = file.read()
        if text.startswith("usage_usec"):
            return int(text.split()[1]) / 1e6
        return int(text) / 1e9

    def close(self) -> None:
        """Kills what is left of the group and removes it."""
        for _ in range(100):
            if not self.folder:
                return
            try:
                os.rmdir(self.folder)
                self.folder = ""
            except OSError:
                for pid in self.processes(0):
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.02)


def descendants(first: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                parents.setdefault(int(file.read().rsplit(")", 1)[1].split()[1]), []).append(int(name))
    found, queue = [], [first]
    while queue:
        pid = queue.pop()
        found.append(pid)
        queue += parents.get(pid, [])
    return found


def process_seconds(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return sum(int(x) for x in file.read().rsplit(")", 1)[1].split()[11:15]) / TICKS
    except OSError:
        return 0.0


def kilobytes(path: str, key: str) -> int:
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith(key + ":"):
                return int(line.split()[1])
    return 0


class Lines:
    """Reads lines from a callable and counts bytes; long lines are not kept whole."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self.read = read
        self.whole = WHOLE_LINE
        self.bytes = 0
        self.count = 0
        self.ended = False
        self.waiting: list[Expected] = []
        self.lock = threading.Lock()
        self.last: list[bytes] = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        parts: list[bytes] = []
        size = 0
        tail = b""
        while True:
            try:
                data = self.read(1 << 20)
            except (OSError, ValueError, AttributeError, http.client.HTTPException):
                data = b""
            if not data:
                break
            self.bytes += len(data)
            begin = 0
            while True:
                end = data.find(b"\n", begin)
                piece = data[begin:] if end < 0 else data[begin:end]
                if size < self.whole:
                    parts.append(piece[: self.whole])
                size += len(piece)
                if end < 0 or size > self.whole:
                    tail = (tail + piece[-LINE_END:])[-LINE_END:]
                if end < 0:
                    break
                self.line(b"".join(parts), size, tail)
                parts, size, tail, begin = [], 0, b"", end + 1
        self.ended = True
        with self.lock:
            for expected in self.waiting:
                expected.event.set()

    def line(self, text: bytes, size: int, tail: bytes) -> None:
        self.count += 1
        self.last = [*self.last[-3:], text[:300]]
        with self.lock:
            for expected in self.waiting[:]:
                if expected.matches(text, tail if size > self.whole else text):
                    expected.found, expected.at = text, time.monotonic()
                    self.waiting.remove(expected)
                    expected.event.set()

    def expect(self, matches: Callable[[bytes, bytes], bool]) -> Expected:
        """Starts to look for a line; `matches` gets its start and its end."""
        expected = Expected(self, matches)
        with self.lock:
            self.waiting.append(expected)
            if self.ended:
                expected.event.set()
        return expected


class Expected:
    """A line that has not arrived yet."""

    def __init__(self, lines: Lines, matches: Callable[[bytes, bytes], bool]) -> None:
        self.lines, self.matches = lines, matches
        self.event = threading.Event()
        self.found: bytes | None = None
        self.at = 0.0

    def wait(self, timeout: float) -> bytes:
        arrived = self.event.wait(timeout)
        if self.found is None:
            with self.lines.lock:
                if self in self.lines.waiting:
                    self.lines.waiting.remove(self)
            last = b" | ".join(self.lines.last)[-600:]
            if not arrived:
                raise TimeoutError(f"no answer in {timeout:.0f} s; last output: {last!r}")
            raise EOFError(f"the process ended; last output: {last!r}")
        return self.found


class Child:
    """A process with pipes, in its own session and cgroup. `stop` ends it and everything it started."""

    def __init__(self, argv: list[str], cwd: str, env: dict[str, str], errors: str) -> None:
        self.meter = Meter()
        self.started = time.monotonic()
        with open(errors, "ab") as stderr:
            self.process = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
                                            bufsize=0, preexec_fn=self.meter.join,  # noqa: PLW1509 - one write, before exec
                                            start_new_session=True)
        out = self.process.stdout.fileno()
        with contextlib.suppress(OSError):
            fcntl.fcntl(out, F_SETPIPE_SZ, 1 << 20)
        self.lines = Lines(lambda size: os.read(out, size))

    def pids(self) -> list[int]:
        return self.meter.processes(self.process.pid)

    def cpu(self) -> float:
        return self.meter.seconds(self.process.pid)

    def pss_mb(self) -> float:
        return sum(kilobytes(f"/proc/{p}/smaps_rollup", "Pss") for p in self.pids()) / 1024

    def rss_mb(self) -> float:
        return sum(kilobytes(f"/proc/{p}/status", "VmRSS") for p in self.pids()) / 1024

    def peak_mb(self) -> float:
        return sum(kilobytes(f"/proc/{p}/status", "VmHWM") for p in self.pids()) / 1024

    def reset_peak(self) -> None:
        for pid in self.pids():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
                file.write("5")

    def write(self, line: bytes) -> None:
        self.process.stdin.write(line)

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        for number, patience in ((0, 0.3), (signal.SIGTERM, 2.0), (signal.SIGKILL, 10.0)):
            if number:
                with contextlib.suppress(OSError):
                    os.killpg(self.process.pid, number)
            try:
                self.process.wait(patience)
                break
            except subprocess.TimeoutExpired:
                continue
        self.meter.close()
        self.lines.thread.join(2)
        with contextlib.suppress(OSError):
            self.process.stdout.close()
