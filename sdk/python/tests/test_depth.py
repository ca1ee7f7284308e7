"""Lines of any depth, and lines that cannot be read: one call may fail, the client never does."""

import asyncio
import json
import random
import sys
import time
import unittest
import unittest.mock

from pinion_agent import CommandError, ProtocolError
from pinion_agent.decoder import _decode_deep, decode, response_id

from .support import Case

DEPTH = 200_000


def deepest(value):
    """How many containers a value has inside each other, without recursion."""
    depth, layer = 0, [value]
    while layer:
        depth += 1
        layer = [
            child
            for one in layer
            for child in (one.values() if isinstance(one, dict) else one)
            if isinstance(child, (dict, list))
        ]
    return depth


def some(rng, depth):
    """Any value."""
    kind = rng.randrange(8 if depth else 6)
    if kind == 6:
        return [some(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 7:
        return {rng.choice(["a", "b", "", "\u00e9", '"\\']) + str(n): some(rng, depth - 1) for n in range(rng.randrange(4))}
    text = "".join(rng.choice('ab"\\/\n\t\u0000\u00e9\u4e2d\U0001f600') for _ in range(rng.randrange(6)))
    return [None, True, False, rng.randrange(-(10**20), 10**20), rng.uniform(-1e300, 1e300), text][kind]


class Decoding(unittest.TestCase):
    def test_deep_lines_are_decoded(self):
        for line in (b"[" * DEPTH + b"]" * DEPTH, b'{"a":[' * (DEPTH // 2) + b"]}" * (DEPTH // 2)):
            self.assertEqual(deepest(decode(line)), DEPTH)

    def test_both_decoders_agree(self):
        rng = random.Random(14)
        for number in range(2_000):
            value = some(rng, 4)
            text = json.dumps(value, ensure_ascii=number % 2 == 0, indent=[None, 1][number % 3 == 0])
            self.assertEqual(_decode_deep(text), json.loads(text), text)

    def test_both_decoders_agree_on_what_is_deep_in_places(self):
        rng = random.Random(15)
        for _ in range(20):
            deep = [some(rng, 3)]
            for level in range(rng.randrange(50, 150)):
                more = {f"n{number}": some(rng, 3) for number in range(level % 3)}
                deep = [some(rng, 3), {"entry": some(rng, 3), "children": deep, **more}, some(rng, 2)]
            text = json.dumps({"data": deep})
            expected = json.loads(text)
            limit = sys.getrecursionlimit()
            sys.setrecursionlimit(90)  # The built-in decoder fails now.
            try:
                value = _decode_deep(text)
            finally:
                sys.setrecursionlimit(limit)
            self.assertEqual(value, expected)

    def test_both_decoders_refuse_the_same(self):
        whole = '{"a": [1, -2.5e3, "x\\u00e9\\n", null, true], "b": {"c": {}}}'
        broken = [whole[:end] for end in range(len(whole))]
        broken += ["[1,]", '{"a":1,}', "{1:2}", "[1 2]", "01", "1.", "+1", "-", "nul", "1 1", "", " "]
        broken += ['"\n"', "[}", "{]", '{"a"}', "[" * 9_000]
        for text in broken:
            for read in (json.loads, _decode_deep):
                with self.assertRaises((ValueError, RecursionError), msg=text[:80]):
                    read(text)

    def test_time_grows_with_length_alone(self):
        def cost(depth):
            line = b'{"entry":{"id":"x"},"children":[' * depth + b"]}" * depth
            start = time.process_time()
            decode(line)
            return time.process_time() - start

        cost(1_000)
        self.assertLess(cost(DEPTH), 60 * cost(DEPTH // 10) + 1)

    def test_id_of_a_response_is_found(self):
        self.assertEqual(response_id(b'{"id":"py7","type":"response","data":[[['), "py7")
        self.assertEqual(response_id(b'{"data":' + b"[" * 9_000 + b',"type": "response", "id": "py8"}'), "py8")
        self.assertIsNone(response_id(b'{"type":"notice","id":"py7"'))
        self.assertIsNone(response_id(b"this is not JSON"))


class Answers(Case):
    def test_deep_answer_is_an_answer(self):
        agent = self.fake()
        for depth in (600, DEPTH):
            answer = agent.call("deep", {"depth": depth})
            self.assertEqual(deepest(answer), 2 * depth + 2)
        self.assertEqual(agent.ask("hello"), "first: hello")

    def test_answer_that_cannot_be_read_fails_one_call(self):
        agent = self.fake()
        for _ in range(3):
            with self.assertRaisesRegex(ProtocolError, "torn"):
                agent.call("torn")
        self.assertEqual(agent.ask("hello"), "first: hello")
        with self.assertRaises(CommandError):
            agent.call("nonsense")

    def test_answer_that_is_too_long_fails_one_call(self):
        agent = self.fake()
        with unittest.mock.patch("pinion_agent.process.MAX_LINE", 1 << 20):
            with self.assertRaisesRegex(ProtocolError, "longer than"):
                agent.call("deep", {"depth": 200_000})
            self.assertEqual(agent.ask("hello"), "first: hello")

    def test_frames_with_wrong_types_end_nothing(self):
        agent = self.fake()
        agent.call("odd")
        self.assertEqual(agent.ask("hello"), "first: hello")

    def test_others_wait_for_their_own_answers(self):
        async def run():
            async with self.async_fake() as agent:
                return await asyncio.gather(
                    agent.call("torn"), agent.call("get_state"), agent.call("deep", {"depth": 5_000}), return_exceptions=True
                )

        torn, state, deep = asyncio.run(run())
        self.assertIsInstance(torn, ProtocolError)
        self.assertEqual(state["sessionId"], "first")
        self.assertEqual(deepest(deep), 10_002)
