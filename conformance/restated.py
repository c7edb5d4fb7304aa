"""Published cases of other systems: rows, and the answer that their documentation or tests give.

A file of ``cases`` has documents of YAML: first the suite (its name, its source, streams and rows), then one per case.
A time is a text ``HH:MM:SS`` or a number of seconds, of 2024-01-01. A row begins with its rowtime. ``expect``: the rows
that come, in any order within a rowtime. ``given``: rows by a name that an ``input`` may have. ``refused``: the code by
which `check` refuses the query. ``rule``: the rule of docs/semantics.md by which the answer differs from ``theirs``.
``lacking``: what there is no SQL for.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

import rowtime as rt
from conformance.verdicts import DIFFERENT, REFUSED, RIGHT, WRONG, Suite, Verdict
from rowtime.core.errors import RowtimeError
from rowtime.testing.runner import Outcome, play
from rowtime.testing.transcripts import ScriptItem, Transcript

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER: Final = Path(__file__).parent / "cases"
DAY: Final = dt.datetime(2024, 1, 1)  # noqa: DTZ001 - all times are UTC
MICROS: Final = 1_000_000
_TIME: Final = re.compile(r"\d\d:\d\d:\d\d")
Case = Mapping[str, Any]


def suites(spark: SparkSession, folder: Path = FOLDER) -> list[Suite]:
    """Return the verdicts of each file."""
    return [suite(spark, path) for path in sorted(folder.glob("*.yaml"))]


def suite(spark: SparkSession, path: Path) -> Suite:
    """Return the verdicts of one file."""
    head, *cases = (one for one in yaml.safe_load_all(path.read_text()) if one)
    return Suite(head["suite"], head["source"], [verdict(spark, head, case) for case in cases])


def verdict(spark: SparkSession, head: Case, case: Case) -> Verdict:  # noqa: PLR0911 - one for each outcome
    """Return the verdict over a case."""
    name = str(case["name"])
    if "lacking" in case:
        return Verdict(name, REFUSED, case["lacking"])
    script = f"{head['streams']}\n{case['sql']}"
    problems = [one for one in rt.check(script) if not one.warns]
    if "refused" in case:
        codes = [one.code for one in problems]
        if case["refused"] in codes:
            return Verdict(name, REFUSED, f"{case['refused']}: {case['because']}")
        return Verdict(name, WRONG, f"refused with {codes}, not {case['refused']}")
    if problems:
        return Verdict(name, WRONG, f"{problems[0].code} {problems[0].message}")
    try:
        found = shown(play(spark, _transcript(head, case), _cut(head, case)))
    except RowtimeError as error:
        return Verdict(name, WRONG, str(error))
    wanted = sorted([_row(row) for row in case["expect"]], key=repr)
    if sorted(found, key=repr) != wanted or [row[0] for row in found] != sorted(row[0] for row in found):
        return Verdict(name, WRONG, f"{found} in place of {wanted}")
    if "rule" in case:
        return Verdict(name, DIFFERENT, case["rule"])
    return Verdict(name, RIGHT)


def _inputs(head: Case, case: Case) -> Mapping[str, Sequence[Sequence[Any]]]:
    found = case.get("input", head.get("input", {}))
    return {name: head["given"][rows] if isinstance(rows, str) else rows for name, rows in found.items()}


def _cut(head: Case, case: Case) -> list[int]:
    """Cut after half of the rows, and at the end."""
    rows = sum(map(len, _inputs(head, case).values()))
    ends = rows + len(_inputs(head, case))
    return sorted({max(1, rows // 2), ends})


def _transcript(head: Case, case: Case) -> Transcript:
    inputs = _inputs(head, case)
    columns = {name: re.findall(r"(\w+) \w+(?:\([^)]*\))?[,)]", text) for name, text in _declared(head).items()}
    rows = [(_micros(row[0]), place, name, row) for name, its in inputs.items() for place, row in enumerate(its)]
    if case.get("arrival", "in order") == "in order":
        rows.sort(key=lambda one: one[0])
    items = [
        ScriptItem(number, name, "main", {"rowtime": at, **_named(columns[name], row[1:])}, None)
        for number, (at, _, name, row) in enumerate(rows, 1)
    ]
    if case.get("arrival") == "by number":  # the first value of a row is when it comes, its time is a column
        items.sort(key=lambda one: one.values["rowtime"] if one.values else 0)
    ends = [ScriptItem(len(items) + n, name, "main", None, 2**62) for n, name in enumerate(inputs, 1)]
    tables = {name: [dict(row) for row in its] for name, its in head.get("tables", {}).items()}
    return Transcript(case["name"], case["name"], f"{head['streams']}\n{case['sql']}", (*items, *ends), (), "exact",
                      frozenset(), tables=tables)  # fmt: skip


def _declared(head: Case) -> Mapping[str, str]:
    return {name.lower(): text for name, text in re.findall(r"CREATE STREAM (\w+) (\([^;]*\))", head["streams"])}


def _named(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    return {name.lower(): _given(value) for name, value in zip(names, values, strict=True)}


def _given(value: Any) -> Any:
    return _micros(value) if isinstance(value, str) and _TIME.fullmatch(value) else value


def _micros(time: Any) -> int:
    """Return a time as microseconds."""
    if isinstance(time, str):
        hours, minutes, seconds = map(int, time.split(":"))
        time = hours * 3600 + minutes * 60 + seconds
    return int((DAY.replace(tzinfo=dt.UTC).timestamp() + time) * MICROS)


def shown(outcome: Outcome) -> list[tuple[Any, ...]]:
    """Return the rows as a case writes them: times as texts."""
    return [tuple(_plain(value) for value in row.values()) for _, row in outcome.rows]


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        at = value.replace(tzinfo=None) - DAY
        return f"{at.days * 24 + at.seconds // 3600:02}:{at.seconds // 60 % 60:02}:{at.seconds % 60:02}"
    return float(value) if isinstance(value, Decimal | float) else value


def _row(row: Sequence[Any]) -> tuple[Any, ...]:
    first, *rest = row
    if not isinstance(first, str):
        first = f"{first // 3600:02}:{first // 60 % 60:02}:{first % 60:02}"
    return (first, *rest)
