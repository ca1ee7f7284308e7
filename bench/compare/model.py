"""Scripted model server: Anthropic Messages, OpenAI chat completions and OpenAI Responses, over plain HTTP.

The driver posts a list of steps to `/control`. Each model request that offers tools takes the next step; requests without tools
(titles, summaries) get a short text. `GET /control` returns one record per request: times, body size, kind and step number.
The server runs in its own process, so that its work is not on the clock of the driver.
"""
from __future__ import annotations

import json
import os
import random
import re
import socket
import socketserver
import sys
import threading
import time
from typing import Any

CONNECTION_TIMEOUT = 3600
# Syllables of the text: no characters that JSON escapes. The text does not repeat, because agents stop answers that do.
SYLLABLES = ("ba", "do", "fen", "gi", "kul", "mo", "nar", "pe", "qui", "ros", "sta", "ti", "vu", "wem", "xa", "zo")


class State:
    """The script, the records and the folder that receives request bodies."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.steps: list[dict[str, Any]] = []
        self.next = 0
        self.records: list[dict[str, Any]] = []
        self.dump = ""
        self.serial = 0

    def take(self, has_tools: bool, record: dict[str, Any]) -> dict[str, Any]:
        """Returns the step for a request. A script that has ended gives a short text."""
        with self.lock:
            self.serial += 1
            record["serial"] = self.serial
            self.records.append(record)
            if not has_tools:
                record["side"] = True
                return {"text": 1}
            if self.next >= len(self.steps):
                record["step"] = -1
                return {"text": 1}
            step = self.steps[self.next]
            record["step"] = self.next
            done = step.setdefault("done", 0) + 1
            step["done"] = done
            if done >= step.get("repeat", 1):
                self.next += 1
            return step


STATE = State()


def pieces(step: dict[str, Any]) -> list[str]:
    if "say" in step:
        return [step["say"]]
    size, rng = step.get("size", 20), random.Random(step.get("seed", 3))
    return [words(rng, size) for _ in range(step.get("text", 1))]


def words(rng: random.Random, size: int) -> str:
    """Returns text of exactly `size` characters that ends with a space."""
    text = ""
    while len(text) < size:
        text += "".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) + " "
    return text[: size - 1] + " "


def argument_pieces(call: dict[str, Any]) -> list[str]:
    """Splits the arguments of a call into its number of deltas."""
    text = json.dumps(call["arguments"])
    count = call.get("deltas", 1)
    size = max(1, -(-len(text) // count))
    return [text[i: i + size] for i in range(0, len(text), size)]


def fill(step: dict[str, Any], body: bytes) -> dict[str, Any]:
    """Replaces `FILL` in arguments by the last match of the call's `fill` in the request, as a model copies a tag from a result."""
    if not any("fill" in call for call in step.get("calls", [])):
        return step
    calls = []
    for call in step["calls"]:
        found = re.findall(call.get("fill", "$^"), body.decode(errors="replace"))
        text = json.dumps(call["arguments"]).replace("FILL", found[-1] if found else "0000")
        calls.append({**call, "arguments": json.loads(text)})
    return {**step, "calls": calls}


def sse(kind: str, value: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(value, separators=(',', ':'))}\n\n".encode()


def anthropic(step: dict[str, Any], serial: int, body: dict[str, Any]) -> list[bytes]:
    """Returns the events of a Messages answer. The ids of calls have a fixed width: they count in the bytes of later requests."""
    tokens = len(json.dumps(body)) // 4
    out = [sse("message_start", {"type": "message_start", "message": {
        "id": f"msg_{serial}", "type": "message", "role": "assistant", "model": body.get("model", ""), "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": tokens, "output_tokens": 1}}})]
    index = 0
    if "calls" not in step or "say" in step:
        out.append(sse("content_block_start", {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}))
        out += [sse("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": x}})
                for x in pieces(step)]
        out.append(sse("content_block_stop", {"type": "content_block_stop", "index": 0}))
        index = 1
    for number, call in enumerate(step.get("calls", [])):
        block = {"type": "tool_use", "id": f"toolu_{serial:05}_{number}", "name": call["name"], "input": {}}
        out.append(sse("content_block_start", {"type": "content_block_start", "index": index, "content_block": block}))
        out += [sse("content_block_delta", {"type": "content_block_delta", "index": index,
                                            "delta": {"type": "input_json_delta", "partial_json": x}}) for x in argument_pieces(call)]
        out.append(sse("content_block_stop", {"type": "content_block_stop", "index": index}))
        index += 1
    reason = "tool_use" if step.get("calls") else "end_turn"
    out.append(sse("message_delta", {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None},
                                     "usage": {"output_tokens": 20}}))
    out.append(sse("message_stop", {"type": "message_stop"}))
    return out


def chat(step: dict[str, Any], serial: int, body: dict[str, Any]) -> list[bytes]:
    """Returns the chunks of a chat completion."""
    head = {"id": f"chatcmpl-{serial}", "object": "chat.completion.chunk", "created": 1, "model": body.get("model", "")}

    def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
        value = {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        return f"data: {json.dumps(value, separators=(',', ':'))}\n\n".encode()

    out = [chunk({"role": "assistant", "content": ""})]
    if "calls" not in step or "say" in step:
        out += [chunk({"content": x}) for x in pieces(step)]
    for number, call in enumerate(step.get("calls", [])):
        function = {"name": call["name"], "arguments": ""}
        out.append(chunk({"tool_calls": [{"index": number, "id": f"call_{serial:05}_{number}", "type": "function", "function": function}]}))
        out += [chunk({"tool_calls": [{"index": number, "function": {"arguments": x}}]}) for x in argument_pieces(call)]
    out.append(chunk({}, "tool_calls" if step.get("calls") else "stop"))
    usage = {**head, "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}}
    out.append(f"data: {json.dumps(usage)}\n\n".encode())
    out.append(b"data: [DONE]\n\n")
    return out


def responses(step: dict[str, Any], serial: int, _: dict[str, Any]) -> list[bytes]:
    """Returns the events of a Responses answer. A call with `input` instead of `arguments` is a custom tool call."""
    begun = {"id": f"resp_{serial}", "status": "in_progress", "output": []}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    items: list[dict[str, Any]] = []
    if "calls" not in step or "say" in step:
        text = "".join(pieces(step))
        item: dict[str, Any] = {"type": "message", "id": f"msg_{serial}", "role": "assistant", "status": "in_progress", "content": []}
        at = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        events.append({"type": "response.output_item.added", "output_index": 0, "item": item})
        events.append({"type": "response.content_part.added", **at, "part": {"type": "output_text", "text": "", "annotations": []}})
        events += [{"type": "response.output_text.delta", **at, "delta": x} for x in pieces(step)]
        events.append({"type": "response.output_text.done", **at, "text": text})
        item = {**item, "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]}
        events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
        items.append(item)
    for number, call in enumerate(step.get("calls", [])):
        index = len(items)
        item = {"id": f"fc_{serial:05}_{number}", "call_id": f"call_{serial:05}_{number}", "name": call["name"], "status": "in_progress"}
        if "input" in call:
            item = {"type": "custom_tool_call", **item, "input": ""}
            final = {**item, "status": "completed", "input": call["input"]}
        else:
            item = {"type": "function_call", **item, "arguments": ""}
            final = {**item, "status": "completed", "arguments": json.dumps(call["arguments"])}
        at = {"item_id": item["id"], "output_index": index}
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        if "input" not in call:
            events += [{"type": "response.function_call_arguments.delta", **at, "delta": x} for x in argument_pieces(call)]
            events.append({"type": "response.function_call_arguments.done", **at, "arguments": final["arguments"]})
        events.append({"type": "response.output_item.done", "output_index": index, "item": final})
        items.append(final)
    usage = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 20,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 120}
    ended = {"id": f"resp_{serial}", "status": "completed", "output": items, "usage": usage}
    events.append({"type": "response.completed", "response": ended})
    return [sse(e["type"], {**e, "sequence_number": i}) for i, e in enumerate(events)]


class Handler(socketserver.BaseRequestHandler):
    """One connection; requests follow each other on it."""

    def handle(self) -> None:
        connection: socket.socket = self.request
        connection.settimeout(CONNECTION_TIMEOUT)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        buffer = b""
        try:
            while True:
                while b"\r\n\r\n" not in buffer:
                    data = connection.recv(1 << 16)
                    if not data:
                        return
                    buffer += data
                head, buffer = buffer.split(b"\r\n\r\n", 1)
                lines = head.decode("latin-1").split("\r\n")
                headers = {k.lower(): v.strip() for k, v in (x.split(":", 1) for x in lines[1:])}
                parts = [buffer]
                have, need = len(buffer), int(headers.get("content-length", "0"))
                while have < need:
                    data = connection.recv(1 << 20)
                    if not data:
                        return
                    parts.append(data)
                    have += len(data)
                whole = b"".join(parts)
                body, buffer = whole[:need], whole[need:]
                method, path = lines[0].split(" ")[:2]
                self.answer(connection, method, path, body, time.monotonic())
        except (OSError, ValueError):
            return

    def answer(self, connection: socket.socket, method: str, path: str, body: bytes, at: float) -> None:
        if path == "/control":
            control(connection, method, body)
            return
        route = path.split("?", maxsplit=1)[0]
        if method != "POST" or not route.endswith(("/messages", "/chat/completions", "/responses")):
            send(connection, {"data": [], "object": "list", "models": []})
            return
        request = json.loads(body)
        record: dict[str, Any] = {"start": at, "bytes": len(body), "path": route}
        step = STATE.take(bool(request.get("tools")), record)
        if STATE.dump:
            with open(os.path.join(STATE.dump, f"{record['serial']:05}.json"), "wb") as file:
                file.write(body)
        step = fill(step, body)
        encode = anthropic if route.endswith("/messages") else responses if route.endswith("/responses") else chat
        events = encode(step, record["serial"], request)
        try:
            stream(connection, events, step.get("pause", 0.0))
        finally:    # some clients close the connection at the last event
            record["end"] = time.monotonic()


def control(connection: socket.socket, method: str, body: bytes) -> None:
    if method == "POST":
        order = json.loads(body)
        with STATE.lock:
            STATE.steps, STATE.next, STATE.records = order.get("steps", []), 0, []
            STATE.dump = order.get("dump", "")
        send(connection, {})
    else:
        with STATE.lock:
            records = list(STATE.records)
        send(connection, records)


def send(connection: socket.socket, value: Any) -> None:
    data = json.dumps(value).encode()
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(data) + data)


def stream(connection: socket.socket, events: list[bytes], pause: float) -> None:
    """Sends each event in its own chunk and its own write."""
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                       b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n")
    due = time.monotonic()
    for event in events:
        if pause:
            due += pause
            time.sleep(max(0.0, due - time.monotonic()))
        connection.sendall(b"%x\r\n" % len(event) + event + b"\r\n")
    connection.sendall(b"0\r\n\r\n")


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024


def main() -> None:
    """Serves until standard input ends: the driver owns this process."""
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
