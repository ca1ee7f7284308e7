"""What the tests share: the program under test, the stand-in, and folders that go away."""

import os
import sys
import tempfile
import unittest

from pinion_agent import Agent, AsyncAgent

PROGRAM = os.environ.get("PINION_PROGRAM")
FAKE = [sys.executable, os.path.join(os.path.dirname(__file__), "fake_agent.py")]
needs_program = unittest.skipUnless(PROGRAM, "PINION_PROGRAM does not name the agent")


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pinion-sdk-")
        self.addCleanup(folder.cleanup)
        self.home = os.path.join(folder.name, "home")
        self.cwd = os.path.join(folder.name, "work")
        os.mkdir(self.home)
        os.mkdir(self.cwd)

    def options(self, **options):
        env = {"HOME": self.home, "PI_CODING_AGENT_DIR": os.path.join(self.home, "agent")}
        return {"cwd": self.cwd, "env": env, "start_timeout": 30.0, "stop_timeout": 30.0, **options}

    def agent(self, **options):
        """The real agent, started, and closed after the test."""
        agent = Agent(**self.options(**options))
        self.addCleanup(agent.close)
        return agent.start()

    def fake(self, **options):
        return self.agent(program=FAKE, **options)

    def async_fake(self, **options):
        return AsyncAgent(**self.options(program=FAKE, **options))
