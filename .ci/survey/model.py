"""A scripted model behind HTTP (OpenAI's chat completions, streamed), and a small web page for tools that fetch.

The last message of a request decides: a line `call NAME {json}` in a user's message is answered with that call (several lines
with several calls) if the request offers the tool, everything else and every tool result with the sentence ANSWER. So the
prompts of a scenario say what the model does, and no second script has to be kept in step.
"""
import http.server
import json
import re
import threading

ANSWER = "The scripted model has answered."
PARAGRAPH = """<p>The colour of the day is turquoise. It has been turquoise for as long as anybody can remember, and nobody expects
that to change before the end of the century, whatever the weather may bring, and whoever may ask for another one.</p>
"""
PAGE = f"""<!doctype html><html><head><title>A page of the survey</title></head><body><article><h1>A page of the survey</h1>
{PARAGRAPH * 6}</article></body></html>"""
FOUND = "The colour of the day, found"
CALL = re.compile(r"^\s*call ([\w.:-]+) (\{.*\})\s*$", re.MULTILINE)


def text_of(message):
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content if isinstance(part, dict))


class Model:
    def __init__(self, rules=(), port=None):
        self.requests = []
        self.rules = [(re.compile(rule["when"], re.DOTALL), rule) for rule in rules]
        self.made = 0
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                model.page(self)

            def do_POST(self):
                model.complete(self)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.servers = [self.server]
        if port:  # an address that an extension has built in
            self.servers.append(http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler))
        for server in self.servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def stop(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def page(self, handler):
        """SearXNG's search, a provider's models, and the page."""
        if "/models" in handler.path:
            spec = {"name": "Scripted", "availableContextTokens": 100000, "capabilities": {"supportsFunctionCalling": True}}
            entry = {"id": "scripted-venice", "type": "text", "object": "model", "model_spec": spec}
            self.send(handler, json.dumps({"object": "list", "data": [entry]}), "application/json")
        elif "/search" in handler.path:
            found = {"url": f"{self.url}/page", "title": FOUND, "content": "It is turquoise."}
            self.send(handler, json.dumps({"query": "", "results": [found]}), "application/json")
        else:
            self.send(handler, PAGE, "text/html; charset=utf-8")

    @staticmethod
    def send(handler, text, kind):
        body = text.encode()
        handler.send_response(200)
        handler.send_header("content-type", kind)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def complete(self, handler):
        body = json.loads(handler.rfile.read(int(handler.headers.get("content-length", 0))) or b"{}")
        if "/web_" in handler.path:  # Ollama's
            page = {"title": FOUND, "content": "turquoise"}
            found = {"results": [{**page, "url": f"{self.url}/page"}], **page, "links": []}
            return self.send(handler, json.dumps(found), "application/json")
        self.requests.append(body)
        delta, reason = self.answer(body)
        if body.get("stream"):
            chunks = [{"delta": {"role": "assistant", **delta}}, {"delta": {}, "finish_reason": reason}]
            text = "".join(f"data: {json.dumps(self.chunk('chat.completion.chunk', chunk))}\n\n" for chunk in chunks)
            payload, kind = f"{text}data: [DONE]\n\n", "text/event-stream"
        else:
            whole = self.chunk("chat.completion", {"message": {"role": "assistant", **delta}, "finish_reason": reason})
            payload, kind = json.dumps(whole), "application/json"
        return self.send(handler, payload, kind)

    @staticmethod
    def chunk(kind, choice):
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "scripted", "choices": [{"index": 0, **choice}], "usage": usage}

    def answer(self, body):
        messages = body.get("messages") or [{}]
        last = messages[-1]
        text = text_of(last)
        for when, rule in self.rules:
            if when.search(text):
                return self.say(rule)
        offered = {tool["function"]["name"] for tool in body.get("tools") or []}
        calls = [call for call in CALL.findall(text) if last.get("role") == "user" and call[0] in offered]
        if calls:
            return self.say({"calls": [{"name": name, "args": json.loads(args)} for name, args in calls]})
        return self.say({"text": ANSWER})

    def say(self, rule):
        calls = []
        for index, call in enumerate(rule.get("calls", [])):
            self.made += 1
            function = {"name": call["name"], "arguments": json.dumps(call["args"])}
            calls.append({"index": index, "id": f"call_{self.made}", "type": "function", "function": function})
        if calls:
            return {"tool_calls": calls, "content": rule.get("text") or None}, "tool_calls"
        return {"content": rule.get("text", ANSWER)}, "stop"
