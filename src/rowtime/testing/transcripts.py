"""Transcripts: a pipeline, its items in arrival order, and the expected output with its times.

The format is that of this project's YAML cases (`docs/transcripts.md`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rowtime.core.clock import strict
from rowtime.core.errors import refuse
from rowtime.core.time import END, to_micros


@dataclass(frozen=True)
class ScriptItem:
    """One item of the input: a row, a bound (``at`` µs UTC), the end of a stream, or that the writer ``leaves``."""

    number: int
    stream: str
    writer: str
    values: Mapping[str, Any] | None
    at: int | None
    leaves: bool = False


@dataclass(frozen=True)
class Expected:
    """An output row or bound, and the number of the item that releases it, if that is fixed."""

    after: int | None
    row: Mapping[str, Any] | None
    bound: int | None


@dataclass(frozen=True)
class Transcript:
    """One case."""

    name: str
    title: str
    sql: str
    items: tuple[ScriptItem, ...]
    expected: tuple[Expected, ...]
    order: str
    rejected: frozenset[tuple[int, str]]
    writers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


def load(path: Path) -> Transcript:
    """Read a case; raises ``Refused`` (R601) if it is not in the format."""
    try:
        return _transcript(path, yaml.load(path.read_text(), Loader=_Loader))  # noqa: S506 - a safe loader
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as wrong:
        raise refuse("R601", f"{path} is not a transcript: {wrong}", "See docs/transcripts.md.") from wrong


if TYPE_CHECKING:
    Safe = yaml.SafeLoader
else:
    Safe = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's loader, if installed, is ten times as fast


class _Loader(Safe):
    """YAML without guessing: dates stay text, and so do y, n, on and off."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(("timestamp", "bool"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_BOOLEANS = {"true": True, "false": False, "True": True, "False": False}


def _transcript(path: Path, case: Mapping[str, Any]) -> Transcript:
    items = tuple(_item(number, entry) for number, entry in enumerate(case["input"], 1))
    return Transcript(
        path.stem,
        case["title"],
        case["sql"],
        items,
        tuple(_expected(entry) for entry in case.get("expect") or ()),
        case.get("order", "exact"),
        frozenset((entry["at"], entry["reason"]) for entry in case.get("rejected") or ()),
        {name.lower(): list(names) for name, names in (case.get("writers") or {}).items()},
        {
            name.lower(): [{str(k).lower(): _value(v) for k, v in row.items()} for row in rows]
            for name, rows in (case.get("tables") or {}).items()
        },
    )


def _item(number: int, entry: Mapping[str, Any]) -> ScriptItem:
    kind, body = next(iter(entry.items()))
    values = {str(key).lower(): _value(value) for key, value in body.items()}
    stream, writer = values.pop("stream").lower(), values.pop("writer", "main")
    if kind in ("row", "leave"):
        return ScriptItem(number, stream, writer, values if kind == "row" else None, None, leaves=kind == "leave")
    at = END if kind == "end" else to_micros(values["at"])
    return ScriptItem(number, stream, writer, None, strict(at) if kind == "strict_bound" else at)


def _value(value: Any) -> Any:
    return _BOOLEANS.get(value, value) if isinstance(value, str) else value


def _expected(entry: Mapping[str, Any]) -> Expected:
    row = entry.get("row")
    bound = entry.get("bound")
    return Expected(
        entry.get("after"),
        None if row is None else {str(k).lower(): _value(v) for k, v in row.items()},
        None if bound is None else to_micros(bound),
    )
