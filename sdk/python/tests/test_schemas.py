"""Schemas of types, and values of such types."""

import dataclasses
import enum
import unittest
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

from pinion_agent.schemas import schema_of_type, value_of_type


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: Annotated[int, "Column"]
    y: float = 0.5
    color: Color = Color.RED
    tags: set[str] = dataclasses.field(default_factory=set)


class _Base(TypedDict):
    name: str


class Shape(_Base, total=False):
    points: list[Point]
    parent: Optional[str]


@dataclasses.dataclass
class Endless:
    children: "list[Endless]"


class Types(unittest.TestCase):
    def test_dataclasses_have_schemas(self):
        self.assertEqual(
            schema_of_type(Point),
            {
                "type": "object",
                "properties": {
                    "x": {"type": "integer", "description": "Column"},
                    "y": {"type": "number"},
                    "color": {"enum": ["red", "blue"]},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["x"],
                "additionalProperties": False,
            },
        )

    def test_typed_dicts_have_schemas(self):
        schema = schema_of_type(Shape)
        self.assertEqual(schema["required"], ["name"])
        self.assertEqual(schema["properties"]["points"], {"type": "array", "items": schema_of_type(Point)})
        self.assertEqual(schema["properties"]["parent"], {"anyOf": [{"type": "string"}, {"type": "null"}]})

    def test_values_become_instances(self):
        point = {"x": 1, "color": "blue", "tags": ["a", "a"]}
        self.assertEqual(value_of_type(Point, point), Point(1, 0.5, Color.BLUE, {"a"}))
        shape = value_of_type(Shape, {"name": "n", "points": [{"x": 2, "y": 3}], "parent": None})
        self.assertEqual(shape, {"name": "n", "points": [Point(2, 3.0)], "parent": None})
        self.assertEqual(value_of_type(dict[str, Point], {"a": {"x": 1}}), {"a": Point(1)})
        self.assertEqual(value_of_type(Any, [1, "x"]), [1, "x"])

    def test_unions_take_the_type_that_fits(self):
        either = Union[Point, Color, int, None]
        for value, wanted in [({"x": 1}, Point(1)), ("red", Color.RED), (7, 7), (None, None)]:
            self.assertEqual(value_of_type(either, value), wanted)

    def test_values_that_do_not_fit_are_refused(self):
        for hint, value in [
            (int, True),
            (int, "1"),
            (bool, 1),
            (float, "1"),
            (list[int], [1, "x"]),
            (Literal["a"], "b"),
            (Color, "green"),
            (Point, {"y": 1.0}),
            (Point, {"x": 1, "z": 1}),
            (Union[Point, int], "x"),
        ]:
            with self.assertRaises(ValueError, msg=f"{hint} {value}"):
                value_of_type(hint, value)

    def test_recursive_type_is_refused(self):
        with self.assertRaises(TypeError):
            schema_of_type(Endless)
