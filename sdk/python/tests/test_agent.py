"""Against the real program, with scripted answers."""

import asyncio
import dataclasses
import enum
import json
import os
import re
import threading
import time
import unittest
from typing import Optional

from pinion_agent import (
    Agent,
    AsyncAgent,
    CommandError,
    Denial,
    RunFailed,
    StartError,
    TimedOut,
    failure,
    reply,
    tool,
    tool_call,
    tool_calls,
    when,
)

from .support import PROGRAM, Case, needs_program


class Severity(enum.Enum):
    LOW = "low"
    HIGH = "high"


@dataclasses.dataclass
class Finding:
    file: str
    severity: Severity
    lines: list[int]
    note: Optional[str] = None


@dataclasses.dataclass
class Report:
    findings: list[Finding]


# Chosen by the prompt: one that ends early may not have asked the model. The first that fits is taken, and requests repeat old prompts.
LONG_THEN_NEXT = [when("zebra", reply("next")), when("walrus", reply("a", "b", delay=30.0))]


@needs_program
class Blocking(Case):
    def test_text_arrives_in_pieces_and_ends(self):
        half = {"stream": [{"text": ["first", {"delay": 30.0}, "second"]}]}
        agent = self.agent(script=[reply("one ", "two ", "three"), half])
        run = agent.run("count")
        self.assertEqual(run.disposition, "started")
        self.assertEqual("".join(run.text()), "one two three")
        result = run.result()
        self.assertEqual((result.text, result.stop_reason, result.error, result.aborted), ("one two three", "stop", None, False))
        self.assertEqual([message["role"] for message in result.messages], ["system", "user", "assistant"])
        # A piece arrives while the rest of the answer is still to come.
        run = agent.run("slowly")
        self.assertEqual(next(run.text()), "first")
        run.abort()
        result = run.result()
        self.assertEqual((result.text, result.aborted), ("first", True))

    def test_updates_do_not_repeat_the_whole_message(self):
        agent = self.agent(script=[reply("a", "b", delay=0.02)])
        updates = [event for event in agent.run("x") if event["type"] == "message_update"]
        self.assertTrue(updates)
        self.assertFalse([event for event in updates if "message" in event])

    def test_tools_run_in_the_working_directory(self):
        with open(os.path.join(self.cwd, "note.txt"), "w") as file:
            file.write("remember the milk")
        agent = self.agent(script=[tool_call("read", path="note.txt"), "done"])
        run = agent.run("read it")
        ends = [event for event in run if event["type"] == "tool_execution_end"]
        self.assertIn("milk", ends[0]["result"]["content"][0]["text"])
        self.assertEqual(run.result().text, "done")

    def test_a_second_prompt_sees_only_its_own_run(self):
        agent = self.agent(script=["first", "second"])
        self.assertEqual(agent.ask("1"), "first")
        run = agent.run("2")
        self.assertEqual([message["role"] for message in run.result().messages], ["user", "assistant"])
        self.assertEqual(run.result().text, "second")

    def test_failures_are_exceptions(self):
        agent = self.agent(script=[failure("auth"), failure("auth")])
        with self.assertRaises(RunFailed) as caught:
            agent.ask("x")
        self.assertIn("401", str(caught.exception))
        self.assertEqual(caught.exception.result.stop_reason, "error")
        self.assertIn("401", agent.run("again").result().error)

    def test_results_fit_their_schema(self):
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        right = tool_call("submit_result", n=4)
        agent = self.agent(script=[tool_call("submit_result", n="x"), right, right, "no", "no", "no", "no"])
        self.assertEqual(agent.ask_json("count", schema), {"n": 4})
        result = agent.run("count", output_schema=schema).result()
        self.assertEqual((result.result, result.result_error), ({"n": 4}, None))
        with self.assertRaises(RunFailed) as caught:
            agent.ask_json("count", schema, limits={"maxTurns": 9})
        self.assertEqual(str(caught.exception), "The model gave no result")
        with self.assertRaises(CommandError):
            agent.ask_json("count", {"type": "nothing"})

    def test_results_are_values_of_their_type(self):
        finding = {"file": "a.rs", "severity": "low", "lines": [3, 4]}
        call = tool_call("submit_result", findings=[finding])
        agent = self.agent(script=[tool_call("submit_result", findings=[{**finding, "lines": ["x"]}]), call])
        report = agent.ask_json("review", Report)
        self.assertEqual(report, Report([Finding("a.rs", Severity.LOW, [3, 4])]))

    def test_refused_commands_are_exceptions(self):
        agent = self.agent(script=[])
        with self.assertRaises(CommandError) as caught:
            agent.set_model("nobody", "nothing")
        self.assertEqual((caught.exception.command, caught.exception.message), ("set_model", "Model not found: nobody/nothing"))
        with self.assertRaises(CommandError) as caught:
            agent.call("no_such_command")
        self.assertTrue(caught.exception.unknown_command)

    def test_a_prompt_during_a_run_is_refused_or_queued(self):
        # The run lasts until the file is there.
        waiting = tool_call("bash", command="until [ -e go ]; do sleep 0.02; done")
        agent = self.agent(script=[waiting, "first", "after"])
        run = agent.run("long")
        with self.assertRaises(CommandError):
            agent.run("now")
        joined = agent.run("later", streaming_behavior="followUp")
        self.assertEqual(joined.disposition, "queued")
        with open(os.path.join(self.cwd, "go"), "w"):
            pass
        self.assertEqual(joined.result().text, "after")
        self.assertEqual(run.result().text, "after")

    def test_abort_ends_a_run(self):
        agent = self.agent(script=[reply("a", "b", delay=30.0)])
        run = agent.run("long")
        for event in run:
            if event["type"] == "message_start" and event["message"]["role"] == "assistant":
                run.abort()
        self.assertTrue(run.result().aborted)
        with self.assertRaises(RunFailed):
            run.result().raise_for_error()

    def test_ask_gives_up_and_aborts(self):
        agent = self.agent(script=LONG_THEN_NEXT)
        with self.assertRaises(TimedOut):
            agent.ask("walrus", timeout=0.5)
        agent.abort()
        self.assertEqual(agent.ask("zebra"), "next")

    def test_silence_has_a_limit(self):
        agent = self.agent(script=[reply("a", "b", delay=30.0)])
        with self.assertRaises(TimedOut):
            for _ in agent.run("long", idle_timeout=0.5):
                pass

    def test_a_recorded_conversation_is_played_again(self):
        with open(os.path.join(self.cwd, "note.txt"), "w") as file:
            file.write("remember the milk")
        again = os.path.join(self.cwd, "again.jsonl")
        tape = os.path.join(os.path.dirname(__file__), "talk.jsonl")
        agent = self.agent(replay=tape)
        run = agent.run("What is in note.txt?")
        ends = [event for event in run if event["type"] == "tool_execution_end"]
        self.assertIn("milk", ends[0]["result"]["content"][0]["text"])
        self.assertEqual(run.result().text, "It reminds you of the milk.")
        with self.assertRaises(RunFailed) as caught:
            agent.ask("And?")
        self.assertIn("no further answer", str(caught.exception))
        self.agent(record=again, script=["x"]).ask("Offline models are not recorded.")
        with open(again, encoding="utf-8") as file:
            self.assertEqual([json.loads(line)["type"] for line in file], ["tape"])

    def test_commands_have_typed_methods(self):
        agent = self.agent(script=["hello"])
        agent.ask("hi")
        self.assertEqual(agent.get_last_assistant_text(), {"text": "hello"})
        self.assertEqual(len(agent.get_messages()["messages"]), 3)
        self.assertEqual(agent.get_session_stats()["assistantMessages"], 1)
        self.assertEqual(agent.bash("echo out; exit 3")["exitCode"], 3)
        self.assertIsNone(agent.set_session_name("mine"))
        self.assertEqual(agent.get_state()["sessionName"], "mine")
        self.assertEqual(agent.new_session(), {"cancelled": False})
        self.assertEqual(agent.get_messages()["messages"], [])

    def test_sessions_are_found_again(self):
        agent = self.agent(script=["hello"])
        agent.ask("remember")
        path = agent.get_state()["sessionFile"]
        agent.close()
        self.assertEqual(agent.returncode, 0)
        again = self.agent(script=[], session=path)
        self.assertEqual([message["role"] for message in again.get_messages()["messages"]], ["system", "user", "assistant"])

    def test_answers_can_depend_on_the_question(self):
        agent = self.agent(script=[when("weather", reply("sunny")), when("time", reply("late"))], persist=False)
        self.assertEqual(agent.ask("the time?"), "late")

    def test_events_of_a_session(self):
        agent = self.agent(script=[])
        events = agent.events(idle_timeout=10.0)
        agent.set_session_name("heard")
        self.assertEqual(next(events)["type"], "session_info_changed")
        events.close()
        self.assertEqual(list(events), [])

    def test_a_callers_threads_share_the_agent(self):
        agent = self.agent(script=[])
        seen = []
        threads = [threading.Thread(target=lambda: seen.append(agent.get_state()["sessionId"])) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(seen), 16)
        self.assertEqual(len(set(seen)), 1)

    def test_closing_during_a_run_is_quick_and_clean(self):
        agent = self.agent(script=[tool_call("bash", command="sleep 60")])
        run = agent.run("sleep")
        for event in run:
            if event["type"] == "tool_execution_start":
                break
        agent.close()
        self.assertEqual(agent.returncode, 0)
        agent.close()

    def test_bad_arguments_say_why(self):
        with self.assertRaises(StartError) as caught:
            self.agent(args=["--rpc-dialect", "klingon"])
        self.assertIn("pi-delta", str(caught.exception))

    def test_host_tools_live(self):
        """Runs once the agent has host tools."""

        @tool
        def double(number: int) -> int:
            """Doubles a number."""
            return number * 2

        agent = self.agent(script=[tool_calls(("double", {"number": 4}), ("double", {"number": 5})), "done"])
        try:
            self.assertEqual(agent.set_tools([double]), ["double"])
        except CommandError as error:
            if not error.unknown_command:
                raise
            self.skipTest("this agent has no host tools yet")
        ends = [event for event in agent.run("compute") if event["type"] == "tool_execution_end"]
        self.assertEqual(sorted(end["result"]["content"][0]["text"] for end in ends), ["10", "8"])

    def test_many_sessions_live(self):
        """Runs once the agent has many sessions."""
        agent = self.agent(script=[when("red", reply("RED")), when("blue", reply("BLUE"))])
        other = os.path.join(self.home, "other")
        os.mkdir(other)
        try:
            second = agent.open_session(cwd=other)
        except CommandError as error:
            if not error.unknown_command:
                raise
            self.skipTest("this agent has one session")
        with second:
            red, blue = agent.run("red"), second.run("blue")
            self.assertEqual((red.result().text, blue.result().text), ("RED", "BLUE"))
            self.assertNotEqual(agent.get_state()["sessionId"], second.get_state()["sessionId"])


@needs_program
class Dialogs(Case):
    ASKING = ("--permission-mode", "ask")

    def test_questions_reach_the_callback(self):
        seen = []

        def handler(dialog):
            seen.append((dialog.method, dialog.options))
            return "Allow once" if "allowed" in dialog.title else Denial("not in this project")

        calls = [tool_call("bash", command="touch allowed"), tool_call("bash", command="touch refused"), "done"]
        agent = self.agent(script=calls, args=self.ASKING, on_dialog=handler)
        self.assertEqual(agent.ask("go"), "done")
        self.assertEqual(seen, [("select", ["Allow once", "Allow for this session", "Deny"])] * 2)
        self.assertEqual(os.listdir(self.cwd), ["allowed"])
        self.assertIn("not in this project", json.dumps(agent.get_messages()["messages"][5]))

    def test_without_a_callback_the_answer_is_no(self):
        agent = self.agent(script=[tool_call("bash", command="touch refused"), "done"], args=self.ASKING)
        self.assertEqual(agent.ask("go"), "done")
        self.assertEqual(os.listdir(self.cwd), [])

    def test_a_question_is_withdrawn_with_its_run(self):
        async def main():
            asked, over = asyncio.Event(), asyncio.Event()

            async def handler(dialog):
                asked.set()
                try:
                    await asyncio.sleep(600.0)
                finally:
                    over.set()

            script = [tool_call("bash", command="true"), "done"]
            async with AsyncAgent(**self.options(script=script, args=self.ASKING, on_dialog=handler)) as agent:
                await agent.run("go")
                await asyncio.wait_for(asked.wait(), 30.0)
                await agent.abort()
                await asyncio.wait_for(over.wait(), 30.0)

        asyncio.run(main())


@needs_program
class Control(Case):
    """Commands that control what a run leaves behind, each against the program."""

    def test_changed_files_are_shown_and_rewound(self):
        calls = [tool_call("write", path="made.txt", content="one\n"), "done"]
        agent = self.agent(script=calls, args=("--checkpoints", "files"))
        agent.ask("make a file")
        path = os.path.join(self.cwd, "made.txt")
        changes = agent.get_changes()
        self.assertEqual([(os.path.basename(file["path"]), file["status"]) for file in changes["files"]], [("made.txt", "added")])
        prompt = agent.get_fork_messages()["messages"][0]["entryId"]
        rewound = agent.rewind(prompt)
        self.assertEqual((len(rewound["restored"]), rewound["kept"], rewound["editorText"]), (1, [], "make a file"))
        self.assertFalse(os.path.exists(path))
        self.assertEqual(len(agent.unrewind()["restored"]), 1)
        self.assertTrue(os.path.exists(path))

    def test_background_processes_are_read_written_and_killed(self):
        calls = [tool_call("bash", command="echo ready; cat", background=True), "started"]
        agent = self.agent(script=calls, args=("--tools", "bash,process"))
        agent.ask("start it")
        (process,) = agent.list_processes()["processes"]
        agent.write_process(process["processId"], "typed\n")
        deadline = time.monotonic() + 30
        text = ""
        while "typed" not in text and time.monotonic() < deadline:
            text = agent.read_process(process["processId"])["text"]
            time.sleep(0.02)
        self.assertIn("ready", text)
        self.assertIn("typed", text)
        self.assertEqual(agent.kill_process(process["processId"])["processId"], process["processId"])

    def test_messages_of_sub_agents_are_read(self):
        calls = [tool_call("task", description="Say one", prompt="Say one word."), "one word", "The answer came."]
        agent = self.agent(script=calls, args=("--tools", "task"), persist=True)
        agent.set_subagent_subscription("events")
        ends = [event for event in agent.run("delegate") if event["type"] == "tool_execution_end"]
        self.assertEqual(agent.get_subagents()["subagents"], [])
        file = ends[0]["result"]["details"]["sessionFile"]
        messages = agent.get_subagent_messages(session_file=file)["messages"]
        self.assertIn("one word", json.dumps(messages))


@needs_program
class Asyncio(Case):
    def test_runs_beside_other_work(self):
        async def main():
            async with AsyncAgent(**self.options(script=[reply("a", "b", "c", delay=0.1)])) as agent:
                run = await agent.run("x")
                states = asyncio.gather(*(agent.get_state() for _ in range(20)))
                text = [piece async for piece in run.text()]
                self.assertEqual("".join(text), "abc")
                self.assertEqual(len(await states), 20)
            self.assertEqual(agent.returncode, 0)

        asyncio.run(main())

    def test_cancelling_a_question_aborts_the_run(self):
        async def main():
            async with AsyncAgent(**self.options(script=LONG_THEN_NEXT)) as agent:
                events = agent.events(idle_timeout=30.0)
                asking = asyncio.ensure_future(agent.ask("walrus"))
                async for event in events:
                    if event["type"] == "agent_start":
                        break
                events.close()
                asking.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await asking
                await agent.abort()
                self.assertEqual(await agent.ask("zebra"), "next")

        asyncio.run(main())


@needs_program
class Readme(Case):
    def test_the_examples_run(self):
        with open(os.path.join(os.path.dirname(__file__), "..", "README.md"), encoding="utf-8") as file:
            examples = re.findall(r"```python[^\n]*\n(.*?)```", file.read(), re.DOTALL)
        self.assertGreaterEqual(len(examples), 2)
        self.assertLessEqual(len(examples[0].splitlines()), 15)
        before = os.getcwd(), dict(os.environ)
        os.chdir(self.cwd)
        os.environ.update(self.options()["env"])
        try:
            for example in examples:
                if "asyncio" in example or "Agent(" in example:
                    exec(compile(example, "README.md", "exec"), {"__name__": "__main__"})
        finally:
            os.chdir(before[0])
            os.environ.clear()
            os.environ.update(before[1])


class Missing(Case):
    def test_a_program_that_is_not_there(self):
        with self.assertRaises(StartError):
            self.agent(program=os.path.join(self.home, "nothing"))

    def test_an_agent_that_was_never_started(self):
        agent = Agent(program=PROGRAM or "pinion")
        agent.close()
        with self.assertRaises(RuntimeError):
            agent.get_state()


if __name__ == "__main__":
    unittest.main()
