"""The schema of OpenLineage events as openlineage-python brings it: its classes are generated from the JSON Schemas.

From them JSON Schemas are made again: objects with their required members and types, facets by the URL of their schema.
"""

from __future__ import annotations

import importlib
import pkgutil
import types
import typing
from enum import Enum
from functools import cache
from typing import Any

import attr
from jsonschema import Draft202012Validator, FormatChecker
from openlineage.client import generated
from openlineage.client.event_v2 import RunEvent
from openlineage.client.generated import base
from openlineage.client.generated.base import BaseFacet

_PLAIN: dict[type, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
}
_FORMATS = {"eventTime": "date-time", "runId": "uuid", "producer": "uri", "schemaURL": "uri"}


def broken(event: Any) -> list[str]:
    """What is wrong with an event, which is plain values; nothing if it is as the schema says."""
    checker = Draft202012Validator(schema_of(RunEvent), format_checker=FormatChecker())
    found = [f"{error.json_path}: {error.message}" for error in checker.iter_errors(event)]
    owners = [event["run"], event["job"], *event["inputs"], *event["outputs"]]
    for owner in owners:
        for kind in ("facets", "inputFacets", "outputFacets"):
            for name, facet in owner.get(kind, {}).items():
                found += [f"{name}: {said}" for said in _broken_facet(facet)]
    return found


def _broken_facet(facet: Any) -> list[str]:
    known = facets().get(facet["_schemaURL"])
    if known is None:
        return [f"no schema {facet['_schemaURL']}"]
    return [error.message for error in Draft202012Validator(schema_of(known)).iter_errors(facet)]


@cache
def facets() -> dict[str, type]:
    """Every facet by the URL of its schema."""
    found: dict[str, type] = {}
    for module in pkgutil.iter_modules(generated.__path__):
        for one in vars(importlib.import_module(f"{generated.__name__}.{module.name}")).values():
            if isinstance(one, type) and issubclass(one, BaseFacet) and one is not BaseFacet:
                found[one._get_schema()] = one
    return found


def schema_of(kind: type) -> dict[str, Any]:
    """The JSON Schema of a class; classes may have themselves inside."""
    known: dict[str, Any] = {}
    return {**_of(kind, known), "$defs": known}


def _of(kind: Any, known: dict[str, Any]) -> dict[str, Any]:
    inside = typing.get_args(kind)
    if attr.has(kind):
        if kind.__name__ not in known:
            known[kind.__name__] = {}
            known[kind.__name__] = _object(kind, known)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if inside and typing.get_origin(kind) in (typing.Union, types.UnionType):
        return {"anyOf": [_of(one, known) for one in inside if one is not type(None)]}
    if inside and typing.get_origin(kind) is list:
        return {"type": "array", "items": _of(inside[0], known)}
    if inside and typing.get_origin(kind) is dict:
        facet = isinstance(inside[1], type) and issubclass(inside[1], BaseFacet)  # looked at by its own schema
        return {"type": "object", "additionalProperties": {} if facet else _of(inside[1], known)}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [one.value for one in kind]}
    return _PLAIN.get(kind, {})


def _object(kind: Any, known: dict[str, Any]) -> dict[str, Any]:
    names = {"ClassVar": typing.ClassVar, **vars(base), **vars(importlib.import_module(kind.__module__))}
    hints = typing.get_type_hints(kind, names)
    members = [one for one in attr.fields(kind) if one.init or one.name in ("_producer", "_schemaURL", "schemaURL")]
    named = {one.name: _of(hints.get(one.name, Any), known) for one in members}
    for name, form in _FORMATS.items():
        if name in named:
            named[name] = {"type": "string", "format": form}
    asked = [one.name for one in members if one.default is attr.NOTHING and one.init]
    return {"type": "object", "properties": named, "required": asked, "additionalProperties": False}
