#!/usr/bin/env python3
"""The conformance kit on a busy machine: patience.py KIT ARGUMENTS OF run.py ...

Steps of the kit wait until nothing was printed for a moment, or for a moment, and take the agent to be done then. Here such a wait
counts only the time in which the agent had nothing to do and this script was not held up.
"""
import importlib
import os
import sys
import time
from typing import Any

# Most seconds that a wait becomes longer, for agents with a tool that never rests.
LONGEST = 5.0
# Pause between two looks, and what such a pause may last, in seconds.
PAUSE, HELD_UP = 0.05, 0.2
# Looks in a row at which the agent must be at rest after a pause.
LOOKS = 3


def is_busy(process):
    """True if a thread of the process, or of one below it, runs or waits for a processor or the disk."""
    todo = [str(process)]
    while todo:
        folder = f"/proc/{todo.pop()}/task"
        try:
            threads = os.listdir(folder)
        except OSError:
            continue
        for thread in threads:
            try:
                with open(f"{folder}/{thread}/stat", encoding="utf-8", errors="replace") as file:
                    if file.read().rpartition(")")[2].split()[0] in "RD":
                        return True
                with open(f"{folder}/{thread}/children", encoding="utf-8") as file:
                    todo += file.read().split()
            except (OSError, IndexError):
                continue
    return False


def install(kit: Any):
    """Makes the runs of the kit patient."""
    step = kit.Run.step

    def quiet(self, secs, to=15.0):
        """Waits until nothing was printed for `secs`, in which the agent could have printed something."""
        begun = looked = last = time.monotonic()
        with self.cond:
            count = len(self.lines)
            while looked - begun < to and looked - last < secs and not self.eof:
                self.cond.wait(PAUSE)
                now = time.monotonic()
                may_wait = now - begun < secs + LONGEST
                if len(self.lines) != count or (may_wait and (now - looked > HELD_UP or is_busy(self.proc.pid))):
                    count = len(self.lines)
                    last = now
                looked = now

    def patient_step(self, given):
        step(self, given)
        if "sleep" not in given:
            return
        end = time.monotonic() + LONGEST
        calm = 0
        while calm < LOOKS and time.monotonic() < end:
            time.sleep(PAUSE / LOOKS)
            calm = 0 if is_busy(self.proc.pid) else calm + 1

    kit.Run.quiet = quiet
    kit.Run.step = patient_step


def main():
    path = sys.argv.pop(1)
    sys.path.insert(0, path)
    kit: Any = importlib.import_module("run")
    install(kit)
    return kit.main()


if __name__ == "__main__":
    sys.exit(main())
