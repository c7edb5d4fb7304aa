"""Numbers in JSON that stand for times, days or decimals, read in the unit that the stream declares.

Spark takes a number in a TIMESTAMP for seconds and multiplies it in 64 bits without a check, so a number of
microseconds becomes a time of another millennium. Here such a field is read as a VARIANT, which keeps what the record
has, and converted by SQL: ``RESOLUTION`` says what a number counts since 1970 (seconds without it, as in Spark), and a
number outside the years 0001 to 9999 does not convert. Texts are read as Spark reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from rowtime.core.columns import MALFORMED
from rowtime.core.time import DAY, MAX_MICROS, MIN_MICROS
from rowtime.expr.store_assignment import type_of
from rowtime.operators.contract import quoted
from rowtime.plan.formats.files import OF_ROWTIME
from rowtime.plan.formats.json_values import DECIMALS, PRECISE, RESOLUTION, units_of
from rowtime.sql.generate import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PER_MICRO: Final = {"SECOND": (1, 1_000_000), "MILLISECOND": (1, 1000), "MICROSECOND": (1, 1), "NANOSECOND": (1000, 1)}
"""So many of a unit are so many µs."""
_TEXT_ONLY: Final = ("locale", "enabledatetimeparsingfallback")
"""Options with which a text is parsed by Spark's JSON reader itself, in place of a cast."""
_INSTANTS: Final = (exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)

ISO: Final = "yyyy-MM-dd[['T'][ ]HH:mm[:ss[.SSSSSS]]][XXX]"
"""Spark's default pattern without the time alone, which would mean a time on the day on which a record is read."""
_ISO_TIME: Final = (
    "^[12][0-9]{3}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})?$"
)
"""Most texts of that pattern; a cast takes a third of its time, and gives the same."""

Sql = Callable[[str], str]


def in_micros(number: str, unit: str) -> str:
    """Return SQL: a whole number in a unit as µs; NULL if 64 bits do not hold them."""
    fewer, more = PER_MICRO[unit]
    if fewer > 1:  # DIV would round up before 1970
        return f"CAST(floor(CAST({number} AS DECIMAL(20, 0)) / {fewer}) AS BIGINT)"
    return number if more == 1 else f"try_multiply({number}, {more}L)"


@dataclass(frozen=True)
class _Reading:
    """How a value is read: its type in the reader's schema, SQL of the value as declared, and of its failure.

    ``fault``: by what was read and the value as declared, which is computed once.
    """

    kind: str
    value: Sql
    fault: Callable[[str, str], str]


@dataclass(frozen=True)
class JsonNumbers:
    """The declared columns of JSON records with numbers that need a unit or a check; other columns are Spark's."""

    readings: Mapping[str, _Reading]

    @classmethod
    def of(cls, columns: Iterable[tuple[str, str]], options: Mapping[str, str]) -> JsonNumbers:
        """Return how columns are read, with the options of a stream."""
        given = {name.lower(): value for name, value in options.items()}
        others = {name: value for name, value in given.items() if name not in OF_ROWTIME}
        reader = _Reader(units_of(given.get(RESOLUTION, "")), given.get(DECIMALS, "").lower() == PRECISE, others)
        readings = {}
        for name, kind in columns:
            parsed = type_of(kind)
            reading = None if parsed is None else reader.reading(parsed, name.lower(), 0)
            if reading is not None:
                readings[name] = reading
        return cls(readings)

    def kind(self, name: str, declared: str) -> str:
        """Return the type of a column in the reader's schema."""
        return self.readings[name].kind if name in self.readings else declared

    def value(self, name: str, path: str) -> str:
        """Return SQL: a column as declared; NULL if it does not convert."""
        return self.readings[name].value(path) if name in self.readings else path

    def fault(self, name: str, path: str, value: str) -> str:
        """Return SQL that is true if a column does not convert to its value; empty if Spark's reader reports that."""
        return self.readings[name].fault(path, value) if name in self.readings else ""

    def converted(self, rows: DataFrame) -> DataFrame:
        """Return records that Spark has read, with columns as declared; a value that does not convert is NULL.

        If Spark reports malformed records, one with such a value is one; its text is written again from its columns.
        """
        if not self.readings:
            return rows
        columns = [name for name in rows.columns if name != MALFORMED]
        places = {name: f"__value{n}" for n, name in enumerate(columns) if name in self.readings}
        read = rows.selectExpr("*", *(f"{self.value(name, quoted(name))} AS {at}" for name, at in places.items()))
        values = [f"{places.get(name, quoted(name))} AS {quoted(name)}" for name in columns]
        if MALFORMED not in rows.columns:  # a static table
            return read.selectExpr(*values)
        faults = " OR ".join(self.fault(name, quoted(name), at) for name, at in places.items())
        text = f"to_json(struct({', '.join(map(quoted, columns))}))"
        return read.selectExpr(*values, f"coalesce({MALFORMED}, IF({faults}, {text}, NULL)) AS {MALFORMED}")


@dataclass(frozen=True)
class _Reader:
    units: Mapping[str, str]
    precise: bool
    options: Mapping[str, str]  # of Spark's reader, by names in lower case

    def reading(self, kind: exp.DataType, path: str, depth: int) -> _Reading | None:
        """Return how values of a type are read; ``None`` if Spark's own reading is right."""
        if kind.this in _INSTANTS:
            return _leaf(self._instant(self.units.get(path, "SECOND")))
        if kind.this in (exp.DType.DATE, exp.DType.DATE32) and path in self.units:
            return _leaf(self._day)
        if kind.this is exp.DType.DECIMAL and self.precise:
            return _leaf(lambda v: _unscaled(v, kind.sql(dialect="spark")))
        if kind.this is exp.DType.STRUCT:
            return self._struct(kind, path, depth)
        if kind.this in (exp.DType.ARRAY, exp.DType.MAP) and kind.expressions:
            return self._elements(kind, path, depth)
        return None

    def _struct(self, kind: exp.DataType, path: str, depth: int) -> _Reading | None:
        parts = [(part.name, part.args["kind"]) for part in kind.expressions]
        inner = {name: self.reading(of, f"{path}.{name.lower()}", depth) for name, of in parts}
        changed = {name: reading for name, reading in inner.items() if reading is not None}
        if not changed:
            return None
        kinds = ", ".join(
            f"{quoted(n)}: {changed[n].kind if n in changed else of.sql(dialect='spark')}" for n, of in parts
        )

        def value(at: str) -> str:
            fields = (f"{at}.{quoted(name)}" for name, _ in parts)
            values = (changed[n].value(f) if n in changed else f for (n, _), f in zip(parts, fields, strict=True))
            members = ", ".join(f"{literal(name)}, {of}" for (name, _), of in zip(parts, values, strict=True))
            return f"IF({at} IS NULL, NULL, named_struct({members}))"

        def fault(at: str, of: str) -> str:
            each = (reading.fault(f"{at}.{quoted(name)}", f"{of}.{quoted(name)}") for name, reading in changed.items())
            return f"({' OR '.join(each)})"

        return _Reading(f"STRUCT<{kinds}>", value, fault)

    def _elements(self, kind: exp.DataType, path: str, depth: int) -> _Reading | None:
        inner = self.reading(kind.expressions[-1], path, depth + 1)
        if inner is None:
            return None
        x, key, of = f"__x{depth}", f"__k{depth}", f"__v{depth}"

        def any_of(given: str, values: str) -> str:
            faults = f"zip_with({given}, {values}, ({x}, {of}) -> {inner.fault(x, of)})"
            return f"coalesce(exists({faults}, {x} -> {x}), FALSE)"

        if kind.this is exp.DType.ARRAY:
            return _Reading(
                f"ARRAY<{inner.kind}>",
                lambda at: f"transform({at}, {x} -> {inner.value(x)})",
                any_of,
            )
        return _Reading(
            f"MAP<{kind.expressions[0].sql(dialect='spark')}, {inner.kind}>",
            lambda at: f"transform_values({at}, ({key}, {x}) -> {inner.value(x)})",
            lambda at, value: any_of(f"map_values({at})", f"map_values({value})"),
        )

    def _instant(self, unit: str) -> Sql:
        """Return SQL of an instant: a whole number in a unit, or a text."""
        more, fewer = PER_MICRO[unit]
        least, greatest = -(-MIN_MICROS * more // fewer), ((MAX_MICROS + 1) * more - 1) // fewer

        def value(v: str) -> str:
            number = f"variant_get({v}, '$', 'bigint')"
            micros = f"timestamp_micros({in_micros(number, unit)})"
            inside = f"IF({number} BETWEEN {least} AND {greatest}, {micros}, NULL)"
            text = self._time(f"variant_get({v}, '$', 'string')")
            return f"CASE schema_of_variant({v}) WHEN 'STRING' THEN {text} WHEN 'BIGINT' THEN {inside} END"

        return value

    def _time(self, text: str) -> str:
        """Return SQL: the instant of a text, as Spark's reader takes it with the stream's options."""
        pattern = self.options.get("timestampformat")
        zone = self.options.get("timezone", "UTC")  # that of rowtime's session is UTC
        if zone != "UTC" or any(name in self.options for name in _TEXT_ONLY):
            return self._parsed(text, "TIMESTAMP")
        if pattern == ISO:
            return f"CASE WHEN {text} RLIKE '{_ISO_TIME}' THEN try_cast({text} AS TIMESTAMP) ELSE {_in(text, ISO)} END"
        return f"try_cast({text} AS TIMESTAMP)" if pattern is None else _in(text, pattern)

    def _day(self, v: str) -> str:
        """Return SQL of a date: the days since 1970, or a text."""
        number = f"variant_get({v}, '$', 'bigint')"
        inside = f"{number} BETWEEN {MIN_MICROS // DAY} AND {MAX_MICROS // DAY}"
        days = f"IF({inside}, date_from_unix_date(CAST({number} AS INT)), NULL)"
        text = self._parsed(f"variant_get({v}, '$', 'string')", "DATE")
        return f"CASE schema_of_variant({v}) WHEN 'STRING' THEN {text} WHEN 'BIGINT' THEN {days} END"

    def _parsed(self, text: str, kind: str) -> str:
        options = ", ".join(literal(part) for pair in self.options.items() for part in pair)
        known = f", map({options})" if options else ""
        return f"from_json(to_json(named_struct('t', {text})), 't {kind}'{known}).t"


def _in(text: str, pattern: str) -> str:
    return f"try_to_timestamp({text}, {literal(pattern)})"


def _leaf(value: Sql) -> _Reading:
    """Return how a VARIANT is read: what is there, and not JSON's null, has to convert."""
    return _Reading(
        "VARIANT", value, lambda v, value: f"({v} IS NOT NULL AND NOT is_variant_null({v}) AND {value} IS NULL)"
    )


def _unscaled(v: str, kind: str) -> str:
    """Return SQL of a decimal of Kafka Connect: a number, or the unscaled value in base64, big-endian and signed.

    A NUMERIC without digits in its declaration is an object with its ``scale`` beside such a ``value``.
    """
    scale = kind.rpartition(",")[2].strip(" )") if "," in kind else "0"
    whole, part = (f"try_variant_get({v}, '$.{name}', '{of}')" for name, of in (("value", "string"), ("scale", "int")))
    plain, scaled = _base64(f"variant_get({v}, '$', 'string')", scale), _base64(whole, part)
    number = f"try_cast(variant_get({v}, '$', 'string') AS {kind})"
    return (
        f"CASE WHEN schema_of_variant({v}) = 'STRING' THEN try_cast({plain} AS {kind})"
        f" WHEN schema_of_variant({v}) LIKE 'OBJECT%' THEN try_cast({scaled} AS {kind}) ELSE {number} END"
    )


def _base64(text: str, scale: str) -> str:
    """Return SQL: the digits of an unscaled value of at most 16 bytes, with the point before the last ``scale``.

    A negative value is one less than the negative of its complement, whose halves are not negative.
    """
    halves = (f"CAST(conv(substring(__h, {at}, 16), 16, 10) AS DECIMAL(20, 0))" for at in (1, 17))
    high, low = (f"IF(__b >= '8', 18446744073709551615 - {half}, {half})" for half in halves)
    size = f"try_add(try_multiply(CAST({high} AS DECIMAL(38, 0)), CAST(18446744073709551616 AS DECIMAL(38, 0))), {low})"
    digits = f"CAST(try_add({size}, IF(__b >= '8', 1, 0)) AS STRING)"
    padded = _let("__d", digits, f"lpad(__d, greatest(length(__d), {scale} + 1), '0')")
    parts = f"substring(__p, 1, length(__p) - {scale}), '.', right(__p, {scale})"
    number = _let("__p", padded, f"concat(IF(__b >= '8', '-', ''), {parts})")
    filled = _let("__h", "lpad(__b, 32, IF(__b >= '8', 'F', '0'))", number)
    fits = f"length(__b) BETWEEN 2 AND 32 AND {scale} BETWEEN 0 AND 38"
    return _let("__b", f"hex(try_to_binary({text}, 'base64'))", f"IF({fits}, {filled}, NULL)")


def _let(name: str, value: str, body: str) -> str:
    """Return SQL of ``body`` with a name for a value that it needs several times."""
    return f"transform(array({value}), {name} -> {body})[0]"
