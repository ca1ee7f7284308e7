#!/usr/bin/env python3
"""Tries both examples with a NATS server, a worker of Pinion and a scripted model.

    pip install temporalio restate-sdk hypercorn
    examples/durable/check.py --pinion target/debug/pinion --nats-server PATH [--restate-server PATH]

The activity of Temporal runs in the SDK's activity environment, twice with the same ids. The handler of Restate runs in the real server if
there is one. `pinion-cluster` must be in the directory of `pinion`.
"""

import argparse
import asyncio
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import temporal_worker
from temporalio.testing import ActivityEnvironment

HERE = pathlib.Path(__file__).resolve().parent
MESSAGE = "Which files are here?"
ANSWER = "There is one file."


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def post(url, value):
    request = urllib.request.Request(
        url, data=json.dumps(value).encode(), headers={"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def patiently(action):
    """Repeats an action for a minute, until its server is there."""
    end = time.monotonic() + 60
    while True:
        try:
            return action()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def prompts(cluster, url, session):
    """How often the prompt is stored."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [cluster, "sessions", "pull", url, session, "--flat", "--dir", folder],
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=60,
        )
        (file,) = pathlib.Path(folder).iterdir()
        entries = [json.loads(line) for line in file.read_text().splitlines()]
    return sum(entry.get("message", {}).get("role") == "user" for entry in entries)


def temporal(count):
    for _ in range(2):
        environment = ActivityEnvironment()
        heartbeats: list[str] = []
        environment.on_heartbeat = heartbeats.append
        prompt = temporal_worker.Prompt(session="temporal", message=MESSAGE)
        answer = asyncio.run(environment.run(temporal_worker.run, prompt))
        assert answer == ANSWER, answer
        print(f"temporal: {answer} ({len(heartbeats)} heartbeats)")
        assert count("temporal") == 1
    print("temporal: the second attempt ran no second prompt")


def restate(server, folder, count, start):
    ingress, admin, service, node = (free_port() for _ in range(4))
    start(
        [sys.executable, "-m", "hypercorn", "--bind", f"127.0.0.1:{service}", "restate_service:app"],
        cwd=HERE,
    )
    start(
        [server, "--base-dir", folder],
        env={
            "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
            "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}",
            "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node}",
            "RESTATE_ADVERTISED_ADDRESS": f"http://127.0.0.1:{node}",
        },
    )
    uri = {"uri": f"http://127.0.0.1:{service}"}
    patiently(lambda: post(f"http://127.0.0.1:{admin}/deployments", uri))
    for _ in range(2):
        # The same idempotency key is one invocation.
        request = urllib.request.Request(
            f"http://127.0.0.1:{ingress}/session/restate/prompt",
            data=json.dumps(MESSAGE).encode(),
            headers={"content-type": "application/json", "idempotency-key": "first"},
        )
        answer = json.loads(urllib.request.urlopen(request, timeout=60).read())
        assert answer == ANSWER, answer
        assert count("restate") == 1
    print(f"restate: {answer} The second request ran no second prompt")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pinion", required=True, type=pathlib.Path)
    parser.add_argument("--nats-server", required=True)
    parser.add_argument("--restate-server")
    arguments = parser.parse_args()
    pinion = arguments.pinion.resolve()
    cluster = pinion.with_name("pinion-cluster")
    processes = []
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        url = f"nats://127.0.0.1:{port}"
        os.environ["PATH"] = f"{pinion.parent}:{os.environ['PATH']}"
        os.environ |= {"PINION_NATS": url, "PI_CODING_AGENT_DIR": f"{folder}/agent"}
        script = pathlib.Path(folder, "replies.json")
        script.write_text(json.dumps([{"repeat": True, "stream": [{"text": ANSWER}]}]))
        output = pathlib.Path(folder, "log")

        def start(command, env=None, cwd=folder):
            with output.open("a") as log:
                processes.append(subprocess.Popen(command, cwd=cwd, env=os.environ | (env or {}), stdout=log, stderr=log))

        try:
            start([arguments.nats_server, "-js", "-a", "127.0.0.1", "-p", str(port), "-sd", f"{folder}/nats"])
            patiently(lambda: socket.create_connection(("127.0.0.1", port), 1).close())
            time.sleep(1)
            model = ["--no-extensions", "--model", "offline/script", "--script", str(script)]
            start([cluster, "worker", "--nats", url, "--program", pinion, "--state-dir", f"{folder}/w", "--", *model])
            temporal(lambda session: prompts(cluster, url, session))
            if arguments.restate_server:
                restate(
                    arguments.restate_server,
                    f"{folder}/restate",
                    lambda session: prompts(cluster, url, session),
                    start,
                )
            else:
                print("skipped: --restate-server is not given")
        except BaseException:
            print(output.read_text()[-4000:], file=sys.stderr)
            raise
        finally:
            for process in processes:
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
