"""JSON Schemas of Python types, and values of such types made of JSON: for parameters of tools and for results of runs."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from typing import Any, Literal, Union

#: Types deeper than this are recursive.
_MAX_DEPTH = 32
_PLAIN: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
    type(None): "null",
}
_SEQUENCES: tuple[Any, ...] = (list, tuple, set, frozenset)
_UNIONS: tuple[Any, ...] = (Union, getattr(types, "UnionType", Union))
# `Required` and `NotRequired` are part of `typing` since Python 3.11.
_REQUIRED: dict[Any, bool] = {
    getattr(typing, name): name == "Required" for name in ("Required", "NotRequired") if hasattr(typing, name)
}


def schema_of_type(hint: Any, depth: int = 0) -> dict[str, Any]:
    """JSON Schema of a type: plain types, lists, dictionaries, unions, `Literal`, enumerations, dataclasses, `TypedDict`s.

    `Annotated[T, "..."]` describes a value. A type without a schema allows every value. Raises `TypeError` for a type that
    contains itself.
    """
    if depth > _MAX_DEPTH:
        raise TypeError("A type that contains itself has no schema here: pass a JSON Schema")
    inner = depth + 1
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        words = [extra for extra in args[1:] if isinstance(extra, str)]
        return {**schema_of_type(args[0], inner), **({"description": words[0]} if words else {})}
    if origin in _REQUIRED:
        return schema_of_type(args[0], inner)
    if origin is Literal:
        return {"enum": list(args)}
    if origin in _UNIONS:
        return {"anyOf": [schema_of_type(option, inner) for option in args]}
    if origin in _SEQUENCES:
        return {"type": "array", "items": schema_of_type(args[0], inner) if args else {}}
    if origin is dict:
        values = schema_of_type(args[1], inner)
        return {"type": "object", **({"additionalProperties": values} if values else {})}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if fields := _fields(hint):
        properties = {name: schema_of_type(of, inner) for name, (of, _) in fields.items()}
        required = [name for name, (_, is_required) in fields.items() if is_required]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"type": _PLAIN[hint]} if hint in _PLAIN else {}


def value_of_type(hint: Any, value: Any) -> Any:
    """Makes a value of the type of what JSON has for it. Raises `ValueError` if it does not fit."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated or origin in _REQUIRED:
        return value_of_type(args[0], value)
    if origin is Literal:
        return _checked(hint, value, value in args)
    if origin in _UNIONS:
        return _first(hint, args, value)
    if origin in _SEQUENCES or hint in _SEQUENCES:
        _checked(hint, value, isinstance(value, list))
        return (origin or hint)(value_of_type(args[0] if args else Any, item) for item in value)
    if origin is dict:
        _checked(hint, value, isinstance(value, dict))
        return {key: value_of_type(args[1], item) for key, item in value.items()}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    if fields := _fields(hint):
        fits = isinstance(value, dict) and all(name in value for name, (_, is_required) in fields.items() if is_required)
        _checked(hint, value, fits and all(name in fields for name in value))
        read = {name: value_of_type(fields[name][0], item) for name, item in value.items()}
        return hint(**read)
    if hint is float:
        _checked(hint, value, isinstance(value, (int, float)) and not isinstance(value, bool))
        return float(value)
    if hint in _PLAIN:
        # `bool` is a kind of `int` for Python, but not for JSON.
        is_bool = isinstance(value, bool) and hint is not bool
        return _checked(hint, value, isinstance(value, hint) and not is_bool)
    return value


def _checked(hint: Any, value: Any, fits: bool) -> Any:
    if not fits:
        raise ValueError(f"{value!r} is no {getattr(hint, '__name__', hint)}")
    return value


def _first(hint: Any, options: tuple[Any, ...], value: Any) -> Any:
    for option in options:
        try:
            return value_of_type(option, value)
        except ValueError:
            continue
    return _checked(hint, value, False)


def _fields(hint: Any) -> dict[str, tuple[Any, bool]]:
    """The members of a dataclass or a `TypedDict`: their types, and whether they must be there. Empty for other types."""
    if not isinstance(hint, type):
        return {}
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        missing = dataclasses.MISSING
        return {
            field.name: (hints[field.name], field.default is missing and field.default_factory is missing)
            for field in dataclasses.fields(hint)
            if field.init
        }
    if issubclass(hint, dict) and hasattr(hint, "__total__"):
        hints = typing.get_type_hints(hint, include_extras=True)
        # Wrong for `Required` and `NotRequired` where annotations are strings (`from __future__ import annotations`).
        known: frozenset[str] = getattr(hint, "__required_keys__", frozenset())
        return {name: (of, _REQUIRED.get(typing.get_origin(of), name in known)) for name, of in hints.items()}
    return {}
