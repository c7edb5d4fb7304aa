"""Kafka records as items: rows from values, bounds from headers, the rest malformed.

Everything is an expression of Spark SQL, so that no record passes through Python. The verdict on a record depends on
its whole text and never on which columns a query reads, on the session's time zone or on the day.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from rowtime.core.columns import ARRIVAL, BOUND, MALFORMED, POSITION, ROWTIME, UNDECODED, WRITER
from rowtime.core.errors import refuse
from rowtime.core.time import END
from rowtime.operators.contract import quoted
from rowtime.operators.rows.calendar import in_calendar
from rowtime.plan.formats.json_values import NAMES, RESOLUTION, units_of
from rowtime.runtime.sources.json_numbers import ISO, JsonNumbers, in_micros

BOUND_HEADER: Final = "rowtime-bound"
STRICT_HEADER: Final = "rowtime-bound-strict"

# The columns of Spark's connector for a record, with headers.
RECORD: Final = {
    "key": "BINARY",
    "value": "BINARY",
    "topic": "STRING",
    "partition": "INT",
    "offset": "BIGINT",
    "timestamp": "TIMESTAMP",
    "headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>",
}

VALUE: Final = "value"
_WRITER: Final = "concat(__k.topic, '/', lpad(__k.partition, greatest(5, length(__k.partition)), '0'))"

_ISO: Final = (
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?$"
)
_NONE: Final[Mapping[str, str]] = {}
_NO_TIME: Final = "CAST(NULL AS TIMESTAMP)"
_ZONE: Final = "(Z|[+-][0-9]{2}:?[0-9]{2})$"

_JSON_OPTIONS: Final = {
    "columnNameOfCorruptRecord": "__raw",
    "timeZone": "UTC",
    "allowSingleQuotes": "false",
    "timestampFormat": ISO,
}


@dataclass(frozen=True)
class Field:
    """One declared column: the expression of the record's value, and the same as the declared type.

    ``fault``: SQL that is true if it does not convert, by the two; by default it is NULL only then.
    """

    name: str
    given: str
    converted: str
    fault: Callable[[str, str], str] | None = None

    def broken(self, value: str) -> str:
        """Return True where the record has a value that does not convert to its ``value``."""
        faults = "" if self.fault is None else self.fault(self.given, value)
        return faults or f"({self.given} IS NOT NULL AND {value} IS NULL)"


Columns = Sequence[tuple[str, str]]  # name and Spark type, as declared


def json_items(
    records: DataFrame,
    columns: Columns,
    rowtime: str | None,
    text: str | None = None,
    options: Mapping[str, str] = _NONE,
) -> DataFrame:
    """Return items of records whose value is one JSON object; ``rowtime`` names the field for the rowtime, if any.

    ``text``: SQL of the object's text if it is a part of the value; the value is then shown in base64. ``options``:
    the stream's, of which those of `json_numbers` count.
    """
    ready = prepared(records) if text is None else prepared(records).withColumn("__text", F.expr(text))
    name = next((n for n, _ in columns if rowtime is not None and n.lower() == rowtime.lower()), rowtime)
    numbers = JsonNumbers.of([(n, kind) for n, kind in columns if n != name], numbers_in(options))
    given = f"__e.{quoted(name or '')}"
    unit = units_of(options.get(RESOLUTION, "")).get((name or "").lower(), "MICROSECOND")
    fields = [_json_field(n, kind, numbers, rowtime=n == name) for n, kind in columns]
    schema = [(n, numbers.kind(n, kind)) for n, kind in columns if n != name]
    read = parsed(ready, [*schema, *([(name, "STRING")] if name is not None else [])])
    if name is None:
        return items_of(read, fields, [UNDECODED], _NO_TIME, text=text is None)
    unit = units_of(options.get(RESOLUTION, "")).get(name.lower(), "MICROSECOND")
    read = read.selectExpr("*", f"{in_calendar(instant(given, unit))} AS __moment")
    faults = [UNDECODED, f"({given} IS NOT NULL AND __moment IS NULL)"]
    return items_of(read, fields, faults, "timestamp_micros(__moment)", text=text is None)


def numbers_in(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options by which numbers in JSON are read, and the reader's own."""
    return {**{name: options[name] for name in NAMES if name in options}, **_JSON_OPTIONS}


def raw_items(records: DataFrame, columns: Columns) -> DataFrame:
    """Return items whose columns are the parts of the record itself (``RECORD``), cast as declared."""
    fields = [_raw_field(name, kind) for name, kind in columns]
    return items_of(prepared(records), fields, [], _NO_TIME)


def check_raw(columns: Columns) -> None:
    """Refuse (R504) a declared column that a record does not have."""
    for name, _ in columns:
        if name.lower() not in RECORD:
            raise refuse("R504", f"a raw Kafka record has no field {name!r}", f"Its fields are {', '.join(RECORD)}.")


def instant(text: str, unit: str = "MICROSECOND") -> str:
    """Return SQL: the µs of an ISO timestamp (UTC if it has no zone) or of a whole number in a unit, else null."""
    text = f"trim({text})"
    whole = f"CASE WHEN length({text}) = 10 THEN concat({text}, ' 00:00:00Z') WHEN {text} RLIKE '{_ZONE}'"
    whole += f" THEN {text} ELSE concat({text}, 'Z') END"
    return (
        f"CASE WHEN {text} RLIKE '^[+-]?[0-9]+$' THEN {in_micros(f'try_cast({text} AS BIGINT)', unit)}"
        f" WHEN {text} RLIKE '{_ISO}' THEN unix_micros(try_cast({whole} AS TIMESTAMP)) END"
    )


def _header(name: str) -> str:
    """Return SQL: the text of the last header with that name; Kafka allows several."""
    last = f"try_element_at(filter(__k.headers, h -> h.key = '{name}'), -1).value"
    return f"CAST({last} AS STRING)"


def prepared(records: DataFrame, *, texts: bool = True) -> DataFrame:
    """Return records with each as one struct ``__k``, its value as text if needed, and the bound in its headers."""
    whole = records.select(F.struct(*RECORD).alias("__k")).selectExpr(
        "__k",
        "try_validate_utf8(CAST(__k.value AS STRING)) AS __text",
        f"coalesce(exists(__k.headers, h -> h.key = '{BOUND_HEADER}'), FALSE) AS __bound",
        f"{_header(BOUND_HEADER)} AS __at",
        f"coalesce(lower(trim({_header(STRICT_HEADER)})), 'false') AS __strict",
    )
    return whole.selectExpr("__k", *(["__text"] if texts else []), "__bound", f"{_bound_micros()} AS __micros")


def _bound_micros() -> str:
    """Return SQL: the plain time of a bound; a strict one is the next microsecond (semantics 1), the end stays."""
    moved = f"{in_calendar(instant('__at'))} + CASE WHEN __strict = 'true' THEN 1 ELSE 0 END"
    return (
        "CASE WHEN NOT __bound OR __strict NOT IN ('true', 'false') THEN NULL"
        f" WHEN lower(trim(__at)) IN ('end', 'infinity', '+infinity', '{END}') THEN {END}"
        f" ELSE {moved} END"
    )


def values_of(records: DataFrame) -> DataFrame:
    """Return the records' hidden columns, and the value that is still to be decoded, if any."""
    wrong = "IF(__bound, __micros IS NULL, __k.value IS NULL)"
    text = "make_valid_utf8(CAST(__k.value AS STRING))"
    return prepared(records, texts=False).selectExpr(
        f"CASE WHEN NOT __bound THEN __k.value END AS {VALUE}",
        f"{_WRITER} AS {WRITER}",
        f"__k.offset AS {POSITION}",
        f"__k.timestamp AS {ARRIVAL}",
        f"timestamp_micros(__micros) AS {BOUND}",
        f"CASE WHEN {wrong} THEN coalesce({text}, 'NULL') END AS {MALFORMED}",
    )


def parsed(records: DataFrame, schema: Columns) -> DataFrame:
    """Return the value's object as ``__e``, and `UNDECODED` if the text is not exactly one object.

    The text is parsed inside an array of an object: alone, Spark reads the first object and ignores the text after it.
    """
    members = ", ".join(f"{quoted(name)}: {kind}" for name, kind in schema)
    wrapped = F.concat(F.lit('{"v":['), F.col("__text"), F.lit("]}"))
    fields = F.from_json(wrapped, f"v ARRAY<STRUCT<{members}>>, __raw STRING", _JSON_OPTIONS)
    return records.withColumn("__p", fields).selectExpr(
        "__k",
        "__bound",
        "__micros",
        "try_element_at(__p.v, 1) AS __e",
        "__p IS NULL OR __p.__raw IS NOT NULL OR coalesce(size(__p.v), 0) <> 1"
        f" OR try_element_at(__p.v, 1) IS NULL AS {UNDECODED}",
    )


def _json_field(name: str, kind: str, numbers: JsonNumbers, *, rowtime: bool) -> Field:
    given = f"__e.{quoted(name)}"
    if not rowtime:
        return Field(name, given, numbers.value(name, given), partial(numbers.fault, name))
    is_instant = kind.strip().upper() == "TIMESTAMP"
    return Field(name, given, "timestamp_micros(__moment)" if is_instant else f"try_cast({given} AS {kind})")


def _raw_field(name: str, kind: str) -> Field:
    given = f"__k.{name.lower()}"
    if RECORD[name.lower()] == kind.strip().upper():
        return Field(name, given, given)
    if RECORD[name.lower()] == "BINARY":
        return Field(name, given, f"try_cast(try_validate_utf8(CAST({given} AS STRING)) AS {kind})")
    return Field(name, given, f"try_cast({given} AS {kind})")


def items_of(
    read: DataFrame, fields: Sequence[Field], faults: Sequence[str], moment: str, *, text: bool = True
) -> DataFrame:
    """Return the declared columns, then the contract's; a malformed value that is no ``text`` is shown in base64.

    ``faults``: SQL of what is wrong with a record besides its fields. What a field converts to is computed once.
    """
    places = {f.name: f"__c{n}" for n, f in enumerate(fields) if f.given != f.converted}
    converted = read.selectExpr("*", *(f"{f.converted} AS {places[f.name]}" for f in fields if f.name in places))
    broken = " OR ".join([*faults, *(f.broken(places[f.name]) for f in fields if f.name in places)]) or "FALSE"
    judged = converted.selectExpr(
        "*", f"CASE WHEN __bound THEN __micros IS NULL ELSE coalesce({broken}, TRUE) END AS __broken"
    )
    good = "NOT __bound AND NOT __broken"
    raw = "make_valid_utf8(CAST(__k.value AS STRING))" if text else "base64(__k.value)"
    return judged.selectExpr(
        *(f"CASE WHEN {good} THEN {places.get(f.name, f.given)} END AS {quoted(f.name)}" for f in fields),
        f"CASE WHEN {good} THEN {moment} END AS {ROWTIME}",
        f"{_WRITER} AS {WRITER}",
        f"__k.offset AS {POSITION}",
        f"__k.timestamp AS {ARRIVAL}",
        f"timestamp_micros(__micros) AS {BOUND}",
        # A tombstone has no text to show, but must not count as decoded.
        f"CASE WHEN __broken THEN coalesce({raw}, 'NULL') END AS {MALFORMED}",
    )
