"""Which types can be read back with equal values from the files of a directory; others are refused (R530)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sqlglot import exp
from sqlglot.errors import SqlglotError

from rowtime.core.errors import Place, Problem
from rowtime.expr.store_assignment import type_of
from rowtime.plan.formats.files import DIRECTORIES, PARTITIONS
from rowtime.plan.formats.lake import LAKES
from rowtime.sql.dialect import Rowtime

_NESTED: Final = (exp.DataType.Type.ARRAY, exp.DataType.Type.MAP, exp.DataType.Type.STRUCT)
_NAMES: Final = {"csv": "CSV", "json": "JSON", "parquet": "Parquet", "delta": "Delta", "iceberg": "Iceberg"}
_TYPED: Final = frozenset({"parquet", *LAKES})  # formats whose files have types of their own
_TEXT: Final = "Write it as text: CAST(… AS STRING), or base64(…) for BINARY; and declare the column STRING."


def unheld(
    kind: str,
    columns: Sequence[tuple[str, str]],
    options: Sequence[tuple[str, str]],
    required: Sequence[str],
    at: Place,
) -> Iterator[Problem]:
    """Yield a problem for each of ``columns`` (name and type, the rowtime too) that a directory's format cannot hold.

    CSV drops an empty line: that of a NULL in the only column.
    """
    if kind == "jdbc":
        yield from _beyond_a_database(columns, options, at)
    if kind not in _NAMES:
        return
    for name, text in columns:
        if what := _unheld(kind, text):
            if kind == "iceberg" and what in _SHORT:
                message = f"{name} is of type {what}, which Iceberg tables do not have"
                yield Problem("R530", message, at, f"Declare {name} INT.")
                continue
            hint = "Write it as JSON or Parquet, or as text (to_json)." if kind == "csv" and what in _WORDS else _TEXT
            message = f"{_NAMES[kind]} files cannot hold the column {name}: {what} would not be read back as it was"
            yield Problem("R530", message, at, hint)
    given = {name.lower(): value for name, value in options}
    if kind == "csv" and len(columns) == 1 and columns[0][0] not in required and not given.get("nullvalue"):
        message = f"CSV files cannot hold a NULL in their only column {columns[0][0]}: readers drop a blank line"
        hint = "Declare it NOT NULL, write ROWTIME too, or give NULL a text: nullValue 'NULL'."
        yield Problem("R530", message, at, hint)


def _beyond_a_database(
    columns: Sequence[tuple[str, str]], options: Sequence[tuple[str, str]], at: Place
) -> Iterator[Problem]:
    """Yield problems (R544) for columns that a database table cannot have; only PostgreSQL has arrays."""
    url = next((value for name, value in options if name.lower() == "url"), "")
    for name, text in columns:
        try:
            parts = [part.this for part in exp.DataType.build(text, dialect=Rowtime).find_all(exp.DataType)]
        except SqlglotError:
            continue
        odd = next((str(p.value) for p in parts if p in _NO_COLUMN), "")
        odd = odd or ("INTERVAL" if text.upper().lstrip().startswith("INTERVAL") else "")
        arrays = parts.count(exp.DataType.Type.ARRAY)
        if arrays and not odd:
            odd = "an ARRAY in an ARRAY" if arrays > 1 else "" if url.startswith("jdbc:postgresql:") else "ARRAY"
        if odd:
            hint = f"Write it as text: to_json({name}), and declare the column STRING."
            yield Problem("R544", f"a table of a database cannot hold the column {name}: {odd}", at, hint)


_NO_COLUMN: Final = (exp.DataType.Type.MAP, exp.DataType.Type.STRUCT, exp.DataType.Type.VARIANT)
_SHORT: Final = ("TINYINT", "SMALLINT")
_WORDS: Final = ("ARRAY", "MAP", "STRUCT")


def _unheld(kind: str, text: str) -> str | None:
    """Return the part of a type that files of a format do not hold."""
    upper = " ".join(text.upper().split())
    if upper.startswith("INTERVAL"):
        return upper if kind in _TYPED or "MONTH" in upper or "YEAR" in upper else None
    try:
        parsed = exp.DataType.build(text, dialect=Rowtime)
    except SqlglotError:
        return None
    return next((what for part in parsed.find_all(exp.DataType) if (what := _part(kind, part))), None)


def _part(kind: str, part: exp.DataType) -> str | None:
    of = part.this
    if kind in LAKES and of == exp.DType.TIME:
        return "TIME"
    if kind == "iceberg" and of in (exp.DType.TINYINT, exp.DType.SMALLINT):
        return str(of.value)
    if isinstance(of, exp.Interval) or of in (exp.DataType.Type.INTERVAL, exp.DataType.Type.VARIANT):
        within = part.sql(dialect="spark").upper()
        held = kind not in _TYPED and "MONTH" not in within and "YEAR" not in within
        return None if held and of != exp.DataType.Type.VARIANT else within
    if kind == "csv" and of in (*_NESTED, exp.DataType.Type.BINARY):
        return str(of.value)
    if kind == "json" and of == exp.DataType.Type.MAP:
        keys = part.expressions[0].sql(dialect="spark").upper() if part.expressions else "STRING"
        return None if keys == "STRING" else f"a MAP with keys of type {keys}"
    return None


def no_partitions(
    kind: str, columns: Sequence[tuple[str, str]], options: Sequence[tuple[str, str]], at: Place
) -> Iterator[Problem]:
    """Yield problems (R570) for columns that cannot distinguish rows: in the key of a lake table, or in partitions."""
    given = {name.lower(): value for name, value in options} if kind in LAKES | DIRECTORIES else {}
    types = dict(columns)
    for option, words, takes in ((PARTITIONS.lower(), "PARTITIONED BY", _PARTITION), ("key", "the key", _KEY)):
        for name in (part.strip() for part in given.get(option, "").split(",")):
            parsed = type_of(types.get(name, "STRING"))
            if parsed is not None and parsed.this not in takes:
                more = "" if takes is _PARTITION else ", TIMESTAMP, DECIMAL"
                hint = f"Use a column of type DATE, STRING, BOOLEAN{more} or a whole number."
                yield Problem("R570", f"{words} names {name}, which is {types[name]}", at, hint)


_WHOLE: Final = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)
_TEXTS: Final = (exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR)
_PARTITION: Final = frozenset((exp.DType.DATE, exp.DType.BOOLEAN, *_TEXTS, *_WHOLE))
_KEY: Final = _PARTITION | {exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ, exp.DType.DECIMAL}
