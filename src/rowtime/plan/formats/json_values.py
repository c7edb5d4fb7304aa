"""Options for values in JSON that stand for times, days and decimals: what numbers count, and how decimals are written.

``at TIMESTAMP RESOLUTION MICROSECONDS`` behind a column, or behind a field of a struct, is the option ``resolution``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from sqlglot import exp

from rowtime.core.errors import Problem
from rowtime.expr.store_assignment import type_of
from rowtime.plan.formats import contract as takes
from rowtime.plan.formats.contract import Option
from rowtime.sql.statements import CreateStream, CreateTable, OptionPlace

Definition = TypeVar("Definition", CreateStream, CreateTable)

RESOLUTION: Final = "resolution"
DECIMALS: Final = "decimal.handling.mode"
NAMES: Final = (RESOLUTION, DECIMALS)
PRECISE: Final = "precise"
FORMS: Final = ("json", "json-schema", "debezium-json")
"""The record formats of a topic in which a value is read by its declared type."""
TIMES: Final = tuple(f"{unit}S" for unit in ("SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND"))
_ENTRY: Final = re.compile(r"\s*(\S+)\s+(\w+?)S?\s*", re.IGNORECASE)
_WORDS: Final = "names of columns with SECONDS, MILLISECONDS, MICROSECONDS, NANOSECONDS or DAYS"
_UNITS: Final = {
    **dict.fromkeys((exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ), TIMES),
    exp.DType.DATE: ("DAYS",),
}


def _resolutions(value: str) -> str:
    units = {*(unit for of in _UNITS.values() for unit in of)}
    fits = all((match := _ENTRY.fullmatch(part)) and f"{match[2].upper()}S" in units for part in value.split(","))
    return "" if fits else _WORDS


OPTIONS: Final = (
    Option(
        RESOLUTION,
        _resolutions,
        meaning="what a number in JSON counts since 1970, for columns of type TIMESTAMP, or DATE (`DAYS`); the clause "
        "`RESOLUTION` behind a column, or behind a field of a struct, is the same",
        default="`SECONDS` for TIMESTAMP; a DATE is a text",
        values="names of columns, each with a unit, separated by commas",
        side="source",
    ),
    Option(
        DECIMALS,
        takes.one_of(PRECISE, "double", "string"),
        meaning="how JSON has decimals: `precise` is the default of Debezium, the unscaled value in base64; "
        "`double` a number; `string` a text of digits",
        default="numbers and texts of digits",
        side="source",
    ),
)


def units_of(value: str) -> Mapping[str, str]:
    """Return the unit of each column or field (``after.at``), in lower case, from the option ``resolution``."""
    entries = (_ENTRY.fullmatch(part) for part in value.split(",") if part.strip())
    return {match[1].lower(): match[2].upper() for match in entries if match is not None}


def with_units(statement: Definition) -> Definition:
    """Return a definition with the units of its columns as the option ``resolution``."""
    units = [(column, unit) for column in statement.columns for unit in column.units]
    if not units:
        return statement
    at = OptionPlace(units[0][0].place, units[0][0].place, 0, 0)
    option = (RESOLUTION, ", ".join(f"{path} {unit}S" for _, (path, unit) in units))
    places = (*statement.option_places, at)
    return replace(statement, options=(*statement.options, option), option_places=places)


def unit_problems(kind: str, statement: CreateStream | CreateTable) -> Iterator[Problem]:
    """Yield problems with units: of no column (R541), of one that has no such unit (R541), or of no JSON (R542)."""
    given = {name.lower(): (value, at) for (name, value), at in _placed(statement)}
    if not given.keys() & {*NAMES}:
        return
    form = given["format"][0].lower() if kind == "kafka" and "format" in given else "json"
    if kind not in ("json", "kafka") or form not in FORMS:
        word, at = ("RESOLUTION", given[RESOLUTION][1]) if RESOLUTION in given else (DECIMALS, given[DECIMALS][1])
        what = f"{word} has no effect here: it is about numbers in JSON, and {statement.name.text} has the format "
        yield Problem("R542", what + (form if kind == "kafka" else kind or "log"), at.name, "Leave it out.")
        return
    if RESOLUTION not in given:
        return
    value, at = given[RESOLUTION]
    columns = ((column.name.lower(), type_of(column.type)) for column in statement.columns)
    kinds = {path: of for name, declared in columns for path, of in _paths(name, declared)}
    for path, unit in units_of(value).items():
        of = kinds.get(path)
        fitting = _UNITS.get(of.this, ()) if of is not None else ()
        if of is None:
            what = f"RESOLUTION is given for {path}, which is not a column"
            yield Problem("R541", what, at.value, f"There are: {', '.join(kinds)}.")
        elif f"{unit}S" not in fitting:
            what = f"RESOLUTION {unit}S does not fit {path}, which is {of.sql(dialect='spark')}"
            hint = f"Use {', '.join(fitting)}." if fitting else "It is for columns of type TIMESTAMP and DATE."
            yield Problem("R541", what, at.value, hint)


def _placed(statement: CreateStream | CreateTable) -> Iterator[tuple[tuple[str, str], OptionPlace]]:
    return zip(statement.options, statement.option_places, strict=True)


def instants_of(columns: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the paths of the columns and fields of type TIMESTAMP, in lower case."""
    for name, kind in columns:
        yield from (path for path, of in _paths(name.lower(), type_of(kind)) if _UNITS.get(of.this) == TIMES)


def _paths(path: str, kind: exp.DataType | None) -> Iterator[tuple[str, exp.DataType]]:
    """Yield a column and the fields inside of it, with their types; elements of arrays and maps have no name."""
    if kind is None:
        return
    if kind.this is exp.DType.STRUCT:
        for part in kind.expressions:
            yield from _paths(f"{path}.{part.name.lower()}", part.args["kind"])
    elif kind.this in (exp.DType.ARRAY, exp.DType.MAP) and kind.expressions:
        yield from _paths(path, kind.expressions[-1])
    else:
        yield path, kind
