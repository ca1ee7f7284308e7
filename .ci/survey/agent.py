"""The program in rpc mode with one extension, as a client sees it: lines out, lines in, dialogs answered."""
import contextlib
import json
import pathlib
import queue
import re
import subprocess
import threading
import time

SILENCE = 0.6


class Agent:
    """Everything it wrote is kept in `lines` (parsed) and `log` (standard error)."""

    def __init__(self, command, env, cwd, answers=()):
        self.lines: list = []
        self.log: list = []
        self.answers = list(answers)
        self.incoming: queue.Queue = queue.Queue()
        self.number = 0
        self.process = subprocess.Popen(command, env=env, cwd=cwd, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, start_new_session=True)
        threading.Thread(target=self.read, daemon=True).start()
        threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            try:
                self.incoming.put(json.loads(line))
            except ValueError:
                self.incoming.put({"type": "NOT JSON", "line": line})
        self.incoming.put(None)

    def write(self, message):
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
        except OSError:
            pass

    def take(self, timeout):
        """The next line, or None when there is none in that time or ever again."""
        try:
            line = self.incoming.get(timeout=timeout)
        except queue.Empty:
            return None
        if line is not None:
            self.lines.append(line)
            if line.get("type") == "extension_ui_request":
                self.reply(line)
        return line

    def reply(self, request):
        method = request.get("method")
        if method not in ("select", "confirm", "input", "editor"):
            return
        told = next((answer for answer in self.answers if re.search(answer["when"], json.dumps(request))), None)
        answer = {"type": "extension_ui_response", "id": request["id"]}
        if method == "confirm":
            answer["confirmed"] = told["confirmed"] if told else True
        elif method == "select":
            options = request.get("options") or [""]
            wanted = told.get("pick", ".") if told else "."
            answer["value"] = next((option for option in options if re.search(wanted, option)), options[0])
        else:
            answer["value"] = told["value"] if told else "an answer"
        self.write(answer)

    def ask(self, command, limit=30):
        """A command and its response; what else arrives is kept."""
        self.number += 1
        name = f"s{self.number}"
        self.write({"id": name, **command})
        end = time.monotonic() + limit
        while time.monotonic() < end:
            line = self.take(end - time.monotonic())
            if line is None:
                return None
            if line.get("type") == "response" and line.get("id") == name:
                return line
        return None

    def settle(self, limit):
        """Waits until no run is under way and nothing has been said for a moment."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            if self.take(SILENCE) is not None:
                continue
            state = self.ask({"type": "get_state"}, 10)
            if state is None or not state.get("data", {}).get("isStreaming"):
                return

    def until(self, done, limit):
        end = time.monotonic() + limit
        while not done():
            if time.monotonic() > end or self.process.poll() is not None:
                return False
            self.take(0.2)
        return True

    def stop(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            return self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def install(npm, package, version, folder, others=()):
    """A package in a folder of its own, without its scripts and without pi's packages (peers: we offer those)."""
    folder = pathlib.Path(folder)
    there = folder / "node_modules" / package / "package.json"
    beside = all((folder / "node_modules" / other.rpartition("@")[0]).exists() for other in others)
    if beside and there.exists() and json.loads(there.read_text())["version"] == version:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}\n')
    command = [npm, "install", "--ignore-scripts", "--legacy-peer-deps", "--omit=dev", "--no-audit", "--no-fund", "--loglevel=error",
               f"{package}@{version}", *others]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["npm failed"])[0]
