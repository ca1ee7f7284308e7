"""Against a stand-in: host tools, dialogs, many sessions, and an agent that misbehaves."""

import asyncio
import functools
import json
import threading
import time
import unittest
from typing import Annotated, Literal, Optional
from unittest import mock

from pinion_agent import (
    AgentExited,
    AsyncAgent,
    CommandError,
    Denial,
    Dialog,
    Lagged,
    ProtocolError,
    StartError,
    TimedOut,
    Tool,
    ToolCall,
    tool,
)
from pinion_agent.blocking import _Thread

from .support import FAKE, Case


@tool
def weather(city: Annotated[str, "Where"], days: int = 1, unit: Literal["C", "F"] = "C") -> str:
    """Says what the weather will be."""
    return f"{city} {days} {unit}"


class Schemas(unittest.TestCase):
    def test_annotations_become_a_schema(self):
        self.assertEqual(
            weather.definition(),
            {
                "name": "weather",
                "description": "Says what the weather will be.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "city": {"type": "string", "description": "Where"},
                        "days": {"type": "integer", "default": 1},
                        "unit": {"enum": ["C", "F"], "default": "C"},
                    },
                    "required": ["city"],
                },
            },
        )
        self.assertEqual(weather("Oslo", 2), "Oslo 2 C")

    def test_other_types(self):
        def many(call: ToolCall, names: list[str], deep: Optional[dict] = None, flag: bool = False):
            """Takes many things."""

        parameters = Tool(many, name="lots", hidden=True).definition()["parameters"]
        self.assertEqual(parameters["required"], ["names"])
        self.assertEqual(parameters["properties"]["names"], {"type": "array", "items": {"type": "string"}})
        self.assertEqual(parameters["properties"]["deep"], {"type": "object"})
        self.assertNotIn("call", parameters["properties"])

    def test_a_tool_needs_a_description(self):
        with self.assertRaises(ValueError):
            tool(lambda: None)


class HostTools(Case):
    def ask(self, agent, text):
        return json.loads(agent.ask(text, timeout=20.0))

    def test_a_function_answers(self):
        agent = self.fake(tools=[weather])
        answer = self.ask(agent, 'call weather {"city": "Oslo"}')
        self.assertEqual(answer["result"], {"content": [{"type": "text", "text": "Oslo 1 C"}]})
        self.assertNotIn("isError", answer)

    def test_what_is_raised_is_an_error_result(self):
        @tool
        async def broken(x: int):
            """Always fails."""
            raise ValueError("no such x")

        agent = self.fake(tools=[broken])
        answer = self.ask(agent, 'call broken {"x": 1}')
        self.assertTrue(answer["isError"])
        self.assertEqual(answer["result"]["content"][0]["text"], "no such x")
        answer = self.ask(agent, 'call missing {"x": 1}')
        self.assertEqual(answer["result"]["content"][0]["text"], "Tool missing not found")

    def test_result_that_json_cannot_express_is_an_error(self):
        @tool
        def odd(kind: str) -> dict:
            """Returns what JSON does not have."""
            return {"content": [], "details": {"number": float("nan"), "set": {1}}[kind]}

        agent = self.fake(tools=[odd])
        for kind in ("number", "set"):
            self.assertTrue(self.ask(agent, f'call odd {{"kind": "{kind}"}}')["isError"])
        with self.assertRaises(ValueError):
            agent.call("get_state", {"number": float("inf")})

    def test_updates_come_before_the_result(self):
        @tool
        def slow(call: ToolCall) -> dict:
            """Takes its time."""
            call.update("half")
            return {"content": [{"type": "text", "text": "whole"}], "details": {"n": 2}}

        agent = self.fake(tools=[slow])
        run = agent.run("call slow {}")
        updates = [event for event in run if event["type"] == "tool_execution_update"]
        self.assertEqual(updates[0]["partialResult"]["content"][0]["text"], "half")
        self.assertEqual(json.loads(run.result().text)["result"]["details"], {"n": 2})

    def test_a_cancelled_call_is_told_and_not_answered(self):
        cancelled = threading.Event()

        @tool
        def patient(call: ToolCall) -> str:
            """Waits until nobody wants it."""
            call.update("waiting")
            if call.cancelled.wait(20.0):
                cancelled.set()
            return "late"

        agent = self.fake(tools=[patient])
        self.assertEqual(agent.ask("cancel patient {}"), "cancelled")
        self.assertTrue(cancelled.wait(20.0))
        self.assertEqual(agent.ask("still there"), "first: still there")

    def test_a_tool_may_use_the_agent(self):
        @tool
        def nosy() -> str:
            """Looks at the agent."""
            return agent.get_state()["sessionId"]

        agent = self.fake(tools=[nosy])
        self.assertEqual(self.ask(agent, "call nosy {}")["result"]["content"][0]["text"], "first")

    def test_a_refused_set_leaves_the_old_one(self):
        agent = self.fake(tools=[weather])
        with self.assertRaises(CommandError):
            agent.set_tools([weather, weather])
        with self.assertRaises(TypeError):
            agent.set_tools([Tool(lambda: None, name="odd", description="Odd", parameters={"type": {1}})])
        self.assertNotIn("isError", self.ask(agent, 'call weather {"city": "Oslo"}'))

    def test_tools_of_an_unanswered_set_can_be_called(self):
        agent = self.fake(command_timeout=0.3)
        with self.assertRaises(TimedOut):
            agent.set_tools([tool(lambda: "here", name="late", description="Late")])
        self.assertEqual(self.ask(agent, "call late {}")["result"]["content"][0]["text"], "here")

    def test_coroutine_of_plain_tool_is_awaited(self):
        async def later(city):
            return f"rain in {city}"

        late = tool(lambda city="Oslo": later(city), name="weather", description="Weather", parameters={"type": "object"})
        answer = self.ask(self.fake(tools=[late]), 'call weather {"city": "Oslo"}')
        self.assertEqual(answer["result"]["content"][0]["text"], "rain in Oslo")

    def test_sessions_have_tools_of_their_own(self):
        agent = self.fake(tools=[weather])
        with agent.open_session() as second:
            answer = self.ask(second, 'call weather {"city": "Oslo"}')
            self.assertEqual((answer["isError"], answer["session"]), (True, "s1"))


class Dialogs(Case):
    def answer(self, question, handler, **options):
        agent = self.fake(on_dialog=handler, **options)
        answer = json.loads(agent.ask("dialog " + json.dumps(question), timeout=20.0))
        return {key: value for key, value in answer.items() if key not in ("id", "type")}

    def test_each_kind(self):
        seen = []

        def handler(dialog: Dialog):
            seen.append(dialog)
            first = dialog.options[:1] and dialog.options[0]
            return {"select": first, "confirm": True, "input": "typed", "editor": dialog.prefill + "!"}[dialog.method]

        self.assertEqual(self.answer({"method": "select", "title": "Which?", "options": ["a", "b"]}, handler), {"value": "a"})
        self.assertEqual(self.answer({"method": "confirm", "title": "Sure?", "message": "Really"}, handler), {"confirmed": True})
        self.assertEqual(self.answer({"method": "input", "title": "Name", "timeout": 5000}, handler), {"value": "typed"})
        self.assertEqual(self.answer({"method": "editor", "title": "Text", "prefill": "x"}, handler), {"value": "x!"})
        self.assertEqual([dialog.title for dialog in seen], ["Which?", "Sure?", "Name", "Text"])

    def test_without_an_answer_it_is_cancelled(self):
        question = {"method": "confirm", "title": "Sure?", "message": ""}
        self.assertEqual(self.answer(question, None), {"cancelled": True})
        self.assertEqual(self.answer(question, lambda dialog: None), {"cancelled": True})
        self.assertEqual(self.answer(question, lambda dialog: 1 / 0), {"cancelled": True})
        self.assertEqual(self.answer(question, lambda dialog: Denial()), {"cancelled": True})
        self.assertEqual(self.answer(question, lambda dialog: Denial("too risky")), {"cancelled": True, "reason": "too risky"})

    def test_coroutine_of_plain_callable_is_awaited(self):
        async def refuse(dialog):
            return False

        question = {"method": "confirm", "title": "Sure?", "message": ""}
        self.assertEqual(self.answer(question, lambda _: refuse(None)), {"confirmed": False})
        self.assertEqual(self.answer(question, functools.partial(refuse)), {"confirmed": False})

    def test_a_slow_user(self):
        async def slow(dialog):
            await asyncio.sleep(30.0)

        question = {"method": "input", "title": "Name"}
        self.assertEqual(self.answer(question, slow, dialog_timeout=0.2), {"cancelled": True, "timedOut": True})
        self.assertEqual(self.answer({**question, "timeout": 200}, slow), {"cancelled": True, "timedOut": True})


class Sessions(Case):
    def test_events_go_to_their_session(self):
        agent = self.fake()
        with agent.open_session(session="other", cwd=self.cwd) as other:
            self.assertEqual(other.handle, "other")
            first, second = agent.run("hello"), other.run("hello")
            self.assertEqual((first.result().text, second.result().text), ("first: hello", "other: hello"))
            self.assertEqual(other.get_state()["sessionId"], "other")

    def test_closing_ends_its_events(self):
        agent = self.fake()
        other = agent.open_session()
        events = other.events()
        other.close()
        self.assertIsNone(events.next(20.0))

    def test_events_and_runs_can_be_closed_after_the_agent(self):
        agent = self.fake()
        events, run = agent.events(), agent.run("silent")
        agent.close()
        events.close()
        run.close()

    def test_calls_of_other_threads_end_with_the_loop(self):
        thread = _Thread()
        begun, ended = threading.Event(), threading.Event()

        async def work():
            begun.set()
            await asyncio.Event().wait()

        def call():
            try:
                thread.wait(work())
            except BaseException:
                ended.set()

        threading.Thread(target=call, daemon=True).start()
        self.assertTrue(begun.wait(20.0))
        with mock.patch("pinion_agent.blocking._LAST_CALLS", 0.1):
            thread.stop()
        self.assertTrue(ended.wait(20.0))
        with self.assertRaises(RuntimeError):
            thread.wait(work())


class Misbehaviour(Case):
    def test_an_agent_that_dies(self):
        agent = self.fake()
        with self.assertRaises(AgentExited) as caught:
            agent.ask("die", timeout=20.0)
        self.assertEqual(caught.exception.returncode, 3)
        self.assertIn("dying as asked", caught.exception.stderr)
        with self.assertRaises(AgentExited):
            agent.get_state()

    def test_the_end_does_not_wait_for_grandchildren(self):
        # The grandchild keeps stderr open for a minute. A wait for the pipes would last for 10 seconds, and for 30.
        begun = time.monotonic()
        agent = self.fake()
        agent.ask("orphan", timeout=20.0)
        with self.assertRaises(AgentExited) as caught:
            agent.ask("die", timeout=50.0)
        self.assertEqual(caught.exception.returncode, 3)
        self.assertLess(time.monotonic() - begun, 9.0)
        other = self.fake()
        other.ask("orphan", timeout=20.0)
        begun = time.monotonic()
        other.close()
        self.assertLess(time.monotonic() - begun, 25.0)

    def test_an_agent_that_says_nonsense(self):
        with self.assertRaises(ProtocolError):
            self.fake().ask("garbage", timeout=20.0)

    def test_a_command_without_an_answer(self):
        agent = self.fake(slow_timeout=0.3)
        with self.assertRaises(TimedOut):
            agent.prompt("mute")

    def test_a_run_without_an_end(self):
        agent = self.fake()
        with self.assertRaises(TimedOut):
            agent.ask("silent", timeout=0.3)
        with self.assertRaises(TimedOut):
            agent.ask("mute", timeout=0.3)

    def test_a_handled_prompt_has_no_run(self):
        run = self.fake().run("/command")
        self.assertEqual((run.disposition, list(run)), ("handled", []))

    def test_events_that_nobody_takes_are_bounded(self):
        agent = self.fake()
        with mock.patch("pinion_agent.run.MAX_WAITING", 100):
            run = agent.run("flood 1000")
            agent.get_state()
        with self.assertRaises(Lagged):
            list(run)

    def test_a_program_that_is_no_agent(self):
        with self.assertRaises(StartError):
            self.agent(program=[FAKE[0], "-c", "import sys; sys.exit('wrong program')"])

    def test_a_start_that_fails_leaves_no_process(self):
        async def main(agent, error, limit):
            with self.assertRaises(error):
                await asyncio.wait_for(agent.start(), limit)
            self.assertIsNotNone(agent.returncode)

        odd = Tool(lambda: None, name="odd", description="Odd", parameters={"type": {1}})
        asyncio.run(main(self.async_fake(tools=[odd]), TypeError, 20.0))
        mute = AsyncAgent(**self.options(program=[FAKE[0], "-c", "import sys; sys.stdin.read()"]))
        asyncio.run(main(mute, asyncio.TimeoutError, 1.0))

    def test_a_program_that_does_not_end(self):
        program = [FAKE[0], "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"]
        with self.assertRaises(StartError):
            self.agent(program=program, start_timeout=0.3, stop_timeout=0.3)
