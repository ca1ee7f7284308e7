#!/usr/bin/env python3
"""The protocol's Python library (PyPI agent-client-protocol), unmodified, in front of our program: every method once.

    acp-python.py PROGRAM WORK_FOLDER
"""

import asyncio
import json
import os
import pathlib
import sys

import acp
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ClientCapabilities,
    CreateTerminalResponse,
    DeniedOutcome,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    EnvVariable,
    FileSystemCapabilities,
    KillTerminalResponse,
    McpServerStdio,
    ReadTextFileResponse,
    ReleaseTerminalResponse,
    RequestPermissionResponse,
    TerminalExitStatus,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
    WriteTextFileResponse,
)

PROGRAM, WORK = sys.argv[1:3]
work = pathlib.Path(WORK)
cwd, home = work / "cwd", work / "home"
script = work / "replies.json"
for folder in (cwd, home / ".pi/agent"):
    folder.mkdir(parents=True, exist_ok=True)
(cwd / "note.txt").write_text("on disk")
settings = {"permissions": {"mode": "ask"}, "defaultTools": ["+todo_write"], "tasks": {"todoReminders": False}}
(home / ".pi/agent/settings.json").write_text(json.dumps(settings))
# The server of the recorded transcripts: its one tool asks the user for a name.
MCP_SERVER = str(pathlib.Path(__file__).resolve().parents[2] / "xtask/src/examples/acp/mcp_server.py")
ENDLESS = {"stream": [{"text": ["Endless"]}, {"delay": 60}, {"text": ["never"]}]}
TODOS = [{"op": "replace", "phases": [{"name": "Work", "tasks": [{"content": "one"}, {"content": "two"}]}]}]


def check(what, holds, seen=None):
    if not holds:
        sys.exit(f"acp-python: not as expected: {what}: {seen}")


def text(*words):
    return {"stream": [{"thinking": ["Hm."], "signature": "s"}, {"text": list(words)}]}


def tool(name, args):
    return {"stream": [{"tool": {"name": name, "args": args}}]}


class Host:
    """An editor with files and terminals."""

    def __init__(self, allow="allow_once"):
        self.allow = allow
        self.updates, self.asked, self.called = [], [], set()
        self.terminal = None
        self.updated = asyncio.Event()

    def joined(self, kind):
        said = [update for update in self.updates if update.session_update == kind]
        return "".join(update.content.text for update in said)

    def kinds(self):
        return {update.session_update for update in self.updates}

    def on_connect(self, conn):
        pass

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)
        self.updated.set()

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append(tool_call)
        chosen = [option for option in options if option.kind == self.allow]
        if not chosen:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen[0].option_id))

    async def read_text_file(self, session_id, path, line=None, limit=None, **_):
        self.called.add("read")
        return ReadTextFileResponse(content="unsaved words" if path.endswith("note.txt") else "")

    async def write_text_file(self, session_id, path, content, **_):
        self.called.add("write")
        await asyncio.to_thread(pathlib.Path(path).write_text, content)
        return WriteTextFileResponse()

    async def create_terminal(self, session_id, command, args=None, env=None, cwd=None, **_):
        self.called.add("create")
        pipe = asyncio.subprocess.PIPE
        self.terminal = await asyncio.create_subprocess_exec(
            command, *(args or []), cwd=cwd, stdout=pipe, stderr=asyncio.subprocess.STDOUT
        )
        self.output = asyncio.create_task(self.terminal.stdout.read())
        return CreateTerminalResponse(terminal_id="t1")

    async def terminal_output(self, session_id, terminal_id, **_):
        output = await self.output
        status = TerminalExitStatus(exit_code=await self.terminal.wait())
        return TerminalOutputResponse(output=output.decode(), truncated=False, exit_status=status)

    async def wait_for_terminal_exit(self, session_id, terminal_id, **_):
        self.called.add("wait")
        self.updated.set()
        code = await self.terminal.wait()
        return WaitForTerminalExitResponse(exit_code=max(code, 0), signal="SIGKILL" if code < 0 else None)

    async def kill_terminal(self, session_id, terminal_id, **_):
        self.called.add("kill")
        self.terminal.kill()
        return KillTerminalResponse()

    async def create_elicitation(self, message, mode, **_):
        self.called.add("form")
        check("a form", "value" in mode.requested_schema.properties, mode)
        return AcceptElicitationResponse(action="accept", content={"value": "Ada"})

    async def until(self, what, fits):
        """Waits until what has come fits."""

        async def wait():
            while not fits():
                self.updated.clear()
                await self.updated.wait()

        try:
            await asyncio.wait_for(wait(), 30)
        except asyncio.TimeoutError:
            check(what, False, self.updates)

    def last(self, kind):
        return next((update for update in reversed(self.updates) if update.session_update == kind), None)

    async def release_terminal(self, session_id, terminal_id, **_):
        self.called.add("release")
        self.updated.set()
        return ReleaseTerminalResponse()


def start(host, replies):
    script.write_text(json.dumps(replies))
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    args = ["acp", "--model", "offline/script", "--script", str(script)]
    # The library reads lines of 64 KiB unless told otherwise.
    limit = {"limit": 16 * 1024 * 1024}
    return acp.spawn_agent_process(
        lambda _: host, PROGRAM, *args, env=env, cwd=cwd, transport_kwargs=limit, use_unstable_protocol=True
    )


async def initialize(agent, able):
    files = FileSystemCapabilities(read_text_file=able, write_text_file=able)
    forms = ElicitationCapabilities(form=ElicitationFormCapabilities()) if able else None
    capabilities = ClientCapabilities(fs=files, terminal=able, elicitation=forms)
    opened = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=capabilities)
    check("version 1", opened.protocol_version == 1, opened)
    check("loads sessions", opened.agent_capabilities.load_session, opened)


async def fails(what, call, code=None):
    try:
        done = await call
    except acp.RequestError as error:
        check(f"{what}: the code", code is None or error.code == code, error.code)
        return
    check(what, False, done)


async def work_with_tools():
    host = Host()
    replies = [
        text("One ", "two."),
        tool("read", {"path": "note.txt"}),
        tool("write", {"path": "made.txt", "content": "made"}),
        tool("bash", {"command": "echo from the terminal"}),
        text("All done."),
        tool("bash", {"command": "echo side > refused"}),
        text("Then not."),
        ENDLESS,
        ENDLESS,
        tool("bash", {"command": "sleep 600"}),
        tool("mcp__names__ask", {}),
        text("Hello."),
        tool("todo_write", {"ops": TODOS}),
        text("Planned."),
    ]
    async with start(host, replies) as (agent, _):
        await initialize(agent, True)
        server = McpServerStdio(name="gone", command="/no/such/server", args=[], env=[EnvVariable(name="A", value="b")])
        names = McpServerStdio(name="names", command="python3", args=[MCP_SERVER], env=[])
        session = await agent.new_session(cwd=str(cwd), mcp_servers=[server, names])
        name = session.session_id
        mode = next(option for option in session.config_options if option.category == "mode")
        check("a mode option", session.modes.current_mode_id == "ask", session)
        ended = await agent.prompt(session_id=name, prompt=[acp.text_block("Count")])
        check("the turn ends", ended.stop_reason == "end_turn", ended)
        await host.until("the answer in pieces", lambda: host.joined("agent_message_chunk") == "One two.")
        check("thoughts", host.joined("agent_thought_chunk") == "Hm.", host.updates)
        await host.until("usage", lambda: host.last("usage_update"))
        usage = host.last("usage_update")
        check("usage", usage and 0 < usage.used <= usage.size and usage.cost.currency == "USD", usage)

        host.updates.clear()
        embedded = acp.resource_block(acp.embedded_text_resource("file:///x.txt", "embedded"))
        link = acp.resource_link_block(name="y", uri="file:///y.txt")
        await agent.prompt(session_id=name, prompt=[acp.text_block("Use tools"), embedded, link])
        # The library handles updates, and the release that the agent does not wait for, beside the end of the turn.
        await host.until("all tools done", lambda: host.joined("agent_message_chunk") == "All done.")
        check("tool calls are told", {"tool_call", "tool_call_update"} <= host.kinds(), host.kinds())
        check("permission for write and bash", len(host.asked) == 2, host.asked)
        check("written by the client", (cwd / "made.txt").read_text() == "made")
        await host.until("files and terminals", lambda: host.called >= {"read", "write", "create", "release"})
        check("unsaved words were read", "unsaved words" in str(host.updates), host.updates)

        host.allow = "reject_once"
        host.updates.clear()
        await agent.prompt(session_id=name, prompt=[acp.text_block("Try again")])
        await host.until("a refused call fails", lambda: any(getattr(one, "status", None) == "failed" for one in host.updates))
        check("a refused command does not run", not (cwd / "refused").exists())

        await agent.set_session_mode(session_id=name, mode_id="read-only")
        options = await agent.set_config_option(config_id=mode.id, session_id=name, value="ask")
        current = next(option for option in options.config_options if option.id == mode.id)
        check("all options come back", len(options.config_options) >= 2 and current.current_value == "ask", options)

        host.updates.clear()
        turn = asyncio.create_task(agent.prompt(session_id=name, prompt=[acp.text_block("Without end")]))
        await host.until("an answer", lambda: "Endless" in host.joined("agent_message_chunk"))
        await agent.cancel(session_id=name)
        check("cancelled", (await turn).stop_reason == "cancelled")
        await cancel_more(agent, host, name)
        await ask_and_plan(agent, host, name)
    return name


async def cancel_more(agent, host, name):
    """A request is cancelled, then a command in a terminal."""
    host.updates.clear()
    # The library has no call for it and numbers its requests.
    number = agent._conn._next_request_id
    turn = asyncio.create_task(agent.prompt(session_id=name, prompt=[acp.text_block("Again")]))
    await host.until("an answer", lambda: "Endless" in host.joined("agent_message_chunk"))
    await agent._conn.send_notification("$/cancel_request", {"requestId": number})
    try:
        check("a cancelled request", (await turn).stop_reason == "cancelled")
    except acp.RequestError as error:
        check("a cancelled request", error.code == -32800, error.code)
    host.allow = "allow_once"
    host.called.clear()
    turn = asyncio.create_task(agent.prompt(session_id=name, prompt=[acp.text_block("Sleep")]))
    await host.until("a terminal", lambda: "wait" in host.called)
    await agent.cancel(session_id=name)
    check("a cancelled command", (await turn).stop_reason == "cancelled")
    await host.until("the terminal is killed and released", lambda: host.called >= {"kill", "release"})


async def ask_and_plan(agent, host, name):
    host.updates.clear()
    await agent.prompt(session_id=name, prompt=[acp.text_block("Ask me")])
    await host.until("the form is shown and used", lambda: "form" in host.called and "The user is Ada." in str(host.updates))
    await agent.prompt(session_id=name, prompt=[acp.text_block("Plan")])
    await host.until("a plan", lambda: host.last("plan"))
    plan = host.last("plan")
    check("the plan", [entry.content for entry in plan.entries] == ["one", "two"], host.updates)


async def open_again(name):
    """A later process: sessions are listed, loaded, resumed, copied and closed."""
    host = Host()
    async with start(host, []) as (agent, _):
        await initialize(agent, True)
        listed = await agent.list_sessions(cwd=str(cwd))
        check("the session is listed", name in [one.session_id for one in listed.sessions], listed)
        await agent.load_session(cwd=str(cwd), session_id=name, mcp_servers=[])
        await host.until("history is replayed to its end", lambda: "Planned." in host.joined("agent_message_chunk"))
        check("history is replayed", host.joined("user_message_chunk").startswith("Count"), host.updates)
        await agent.close_session(session_id=name)
        host.updates.clear()
        await agent.resume_session(session_id=name, cwd=str(cwd), mcp_servers=[])
        check("nothing is replayed", host.joined("agent_message_chunk") == "", host.updates)
        copy = await agent.fork_session(session_id=name, cwd=str(cwd), mcp_servers=[])
        check("a session of its own", copy.session_id != name, copy)
        await agent.close_session(session_id=copy.session_id)
        await agent.close_session(session_id=name)
        await fails("a closed session refuses", agent.prompt(session_id=name, prompt=[acp.text_block("There?")]), -32002)
        await fails("unknown methods", agent.ext_method("no_such_method", {}), -32601)
        await fails("an unknown login is refused", agent.authenticate(method_id="no-such-login"))
        await agent.ext_notification("no_such_notification", {})
        again = await agent.list_sessions(cwd=str(cwd))
        check("still there", name in [one.session_id for one in again.sessions], again)
        # The library has no calls for these.
        await agent._conn.send_request("logout", {})
        await agent._conn.send_request("session/delete", {"sessionId": name})
        left = await agent.list_sessions(cwd=str(cwd))
        check("deleted", name not in [one.session_id for one in left.sessions], left)


async def work_unattended():
    """A client whose user refuses every question gets nothing run that needs permission."""
    host = Host(allow="nobody")
    async with start(host, [tool("bash", {"command": "touch ran"}), text("No.")]) as (agent, _):
        await initialize(agent, False)
        session = await agent.new_session(cwd=str(cwd), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("Run it")])
        check("nothing ran", not (cwd / "ran").exists() and host.asked, host.updates)


async def main():
    name = await asyncio.wait_for(work_with_tools(), 120)
    await asyncio.wait_for(open_again(name), 60)
    await asyncio.wait_for(work_unattended(), 60)


asyncio.run(main())
print("ok: acp-python: every method of the protocol's Python library")
