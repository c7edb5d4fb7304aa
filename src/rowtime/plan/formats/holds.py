"""A server's limits on values, besides types: checked at the gate of the pump, before the tick commits.

A value that a database or a broker refuses after the commit would be refused again after every start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from rowtime.core.partition_folders import ESCAPED, LONGEST, NULL, escaped
from rowtime.expr.store_assignment import type_of
from rowtime.operators.contract import quoted
from rowtime.plan.formats.files import DIRECTORIES, PARTITIONS
from rowtime.plan.formats.lake import LAKES
from rowtime.sql.script import parse_expression

if TYPE_CHECKING:
    from rowtime.plan.bind.stream_defs import StreamDef

Hold = tuple[str, exp.Expr]  # the demand in words, and as a condition over the target's columns

REQUEST: Final = 1_048_576
"""Bytes: the largest record of Kafka's producer (``max.request.size``) by default."""
_AROUND: Final = 400  # bytes of a record besides its key, its value and the stream's name: headers, lengths, its batch
_A_COLUMN: Final = 16  # bytes of a member of a JSON object besides its name and its value
_FIXED: Final = frozenset(
    ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP")
)
_ESCAPED: Final = 6  # greatest number of bytes in JSON for one byte


def holds_of(stream: StreamDef) -> tuple[Hold, ...]:
    """Return the target's demands on each row."""
    options = {name.lower(): value for name, value in stream.options}
    if stream.format == "jdbc":
        is_postgresql = options.get("url", "").lower().startswith("jdbc:postgresql:")
        return (*_without_nul(stream.columns), *(() if is_postgresql else _in_both_calendars(stream.columns)))
    if stream.format in LAKES | DIRECTORIES:
        named = stream.format in DIRECTORIES
        return tuple(_in_partitions(stream.columns, options.get(PARTITIONS.lower(), ""), named=named))
    if stream.format == "kafka":
        inside = options.get("value.format", "").lower() == "protobuf"
        return (*_small_enough(stream, options), *(_without_null_inside(stream.columns) if inside else ()))
    return ()


def _without_null_inside(columns: Sequence[tuple[str, str]]) -> Iterator[Hold]:
    """Yield conditions for Protobuf: no NULL in a repeated field, nor as the value of a map."""
    for name, kind in columns:
        parsed = type_of(kind)
        if parsed is not None and (some := _some_null(quoted(name), parsed, 0)):
            words = f"{name} without NULL inside of arrays and maps, which Protobuf does not have"
            yield words, parse_expression(f"NOT COALESCE({some}, FALSE)")


def _some_null(path: str, kind: exp.DataType, depth: int) -> str:
    """Return SQL that tests for a NULL inside an array or a map; empty if the type has neither."""
    if kind.this is exp.DType.STRUCT:
        parts = (_some_null(f"{path}.{quoted(part.name)}", part.args["kind"], depth) for part in kind.expressions)
        return " OR ".join(f"COALESCE({part}, FALSE)" for part in parts if part)
    if kind.this not in (exp.DType.ARRAY, exp.DType.MAP):
        return ""
    values = path if kind.this is exp.DType.ARRAY else f"MAP_VALUES({path})"
    element = f"x{depth}"
    inner = _some_null(element, kind.expressions[-1], depth + 1)
    return f"EXISTS({values}, {element} -> {element} IS NULL{f' OR {inner}' if inner else ''})"


def _in_partitions(columns: Sequence[tuple[str, str]], names: str, *, named: bool) -> Iterator[Hold]:
    """Yield conditions for partitions: an empty text would become NULL. ``named``: the folder's name has the value."""
    partitions = {name.strip() for name in names.split(",")}
    for name, kind in columns:
        if name in partitions and kind.upper().startswith(("STRING", "CHAR", "VARCHAR")):
            filled = parse_expression(f"{quoted(name)} <> ''")
            yield f"{name} without empty texts, which a partition cannot have", filled
            if named:
                yield f"{name} as a text that can name a folder", _may_name(name)


def _may_name(name: str) -> exp.Expr:
    """Test for a valid name: not the one for NULL, no NUL, and short enough with three bytes for each odd character."""
    text = quoted(name)
    given = [parse_expression(text), exp.Literal.string(ESCAPED), exp.Literal.string("")]
    plain = exp.Anonymous(this="TRANSLATE", expressions=given)
    most = LONGEST - len(f"{escaped(name)}=".encode())
    fits = parse_expression(
        f"{text} <> '{NULL}' AND INSTR({text}, CHR(0)) = 0 AND "
        f"OCTET_LENGTH({text}) + 2 * (CHAR_LENGTH({text}) - CHAR_LENGTH(plain)) <= {most}"
    )
    return fits.transform(lambda node: plain if isinstance(node, exp.Column) and node.name == "plain" else node)


def _without_nul(columns: Sequence[tuple[str, str]]) -> Iterator[Hold]:
    """Yield conditions: no database stores a text with the character NUL."""
    for name, kind in columns:
        text, upper = quoted(name), kind.upper()
        if upper.startswith(("STRING", "CHAR", "VARCHAR")):
            yield f"{name} without the character NUL", parse_expression(f"INSTR({text}, CHR(0)) = 0")
        elif upper.startswith("ARRAY") and any(word in upper for word in ("STRING", "CHAR")):
            condition = f"INSTR(ARRAY_JOIN({text}, ''), CHR(0)) = 0"
            yield f"{name} without the character NUL", parse_expression(condition)


def _in_both_calendars(columns: Sequence[tuple[str, str]]) -> Iterator[Hold]:
    """Yield conditions on dates: drivers use Java's calendar, which lacks 1582-10-05 to 1582-10-14.

    These days would become others. Which instants are in them depends on the time zone of the JVM, so one more day is
    refused at each end.
    """
    for name, kind in columns:
        if (upper := kind.strip().upper()) in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"):
            zoned = upper in ("TIMESTAMP", "TIMESTAMP_LTZ")
            first, after = ("1582-10-04", "1582-10-16") if zoned else ("1582-10-05", "1582-10-15")
            condition = f"{quoted(name)} < {_at(upper, first)} OR {quoted(name)} >= {_at(upper, after)}"
            yield f"{name} outside of 1582-10-05 to 1582-10-14", parse_expression(condition)


def _at(kind: str, day: str) -> str:
    """Return the beginning of a day (UTC) as a value of a time type."""
    if kind in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return f"CAST('{day} 00:00:00Z' AS TIMESTAMP)"
    return f"CAST('{day}' AS {kind})"


def _small_enough(stream: StreamDef, options: Mapping[str, str]) -> Iterator[Hold]:
    """Yield conditions on size: a record larger than the producer's limit is never sent.

    A key that is not a column does not count: the options of the sink are checked when all statements are bound.
    """
    names = [name for name, _ in stream.columns]
    varying = [(name, kind) for name, kind in stream.columns if kind.upper() not in _FIXED]
    limit = int(options.get("kafka.max.request.size", REQUEST))
    several = options.get("key.columns")
    given = [options.get("key.column", "")] if several is None else [key.strip() for key in several.split(",")]
    keys = [key for key in given if key in names]
    if options.get("value.format", "json").lower() == "raw":
        names, keys = [name for name in names if name.lower() == "value"], [n for n in names if n.lower() == "key"]
    around = _AROUND + len(stream.name.encode()) + sum(len(name.encode()) + _A_COLUMN for name in (*names, *keys))
    if not varying or not names:
        return
    whole = f"{_size(names)} + {_size(keys)} + {around} <= {limit}" if keys else f"{_size(names)} + {around} <= {limit}"
    if all(kind.upper().startswith(("STRING", "CHAR", "VARCHAR")) for _, kind in varying):
        # Most rows are recognized as small without making their JSON.
        lengths = " + ".join(f"COALESCE(OCTET_LENGTH({quoted(name)}), 0)" for name, _ in varying)
        fixed = 40 * (len(stream.columns) - len(varying))
        whole = f"({lengths}) * {_ESCAPED * (2 if keys else 1)} + {fixed + around} <= {limit} OR {whole}"
    yield f"a record of at most {limit} bytes", parse_expression(whole)


def _size(names: Sequence[str]) -> str:
    """Return the size in bytes of a JSON object of some columns."""
    members = ", ".join(f"'{name.replace(chr(39), chr(39) * 2)}', {quoted(name)}" for name in names)
    return f"OCTET_LENGTH(TO_JSON(NAMED_STRUCT({members})))"
