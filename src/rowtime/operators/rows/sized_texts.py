"""CHAR(n) and VARCHAR(n): texts of n characters, or of at most n, anywhere in a value.

As in Spark: trailing blanks beyond the length are cut off, a longer text does not fit, and a shorter CHAR is padded
with blanks. Two map keys that become equal by this do not fit either.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from sqlglot import exp

from rowtime.expr.store_assignment import is_padded, length_of, type_of
from rowtime.operators.contract import quoted


@lru_cache(maxsize=4096)
def holds_lengths(kind: str) -> bool:
    """Return True for CHAR and VARCHAR, and for a type that contains one."""
    parsed = type_of(kind)
    return parsed is not None and any(
        length_of(part.sql("spark")) is not None for part in parsed.find_all(exp.DataType)
    )


@lru_cache(maxsize=4096)
def in_length(value: str, kind: str) -> str:
    """Return Spark SQL of the condition that the texts in a value fit its type; NULL fits."""
    parsed = type_of(kind)
    return " AND ".join(_conditions(value, parsed, 0)) if parsed is not None else "true"


def in_size(value: str, kind: str) -> str:
    """Return Spark SQL of a value with its texts trimmed or padded to its type; they fit (`in_length`)."""
    parsed = type_of(kind)
    return value if parsed is None else _sized(value, parsed, 0)


def kept_in_size(name: str, kind: str) -> str:
    """Return a column padded or trimmed to the length of its type; a value that does not fit stays as it is."""
    column = quoted(name)
    fits = f"coalesce({in_length(column, kind)}, true)"
    return f"CASE WHEN {fits} THEN {in_size(column, kind)} ELSE {column} END AS {column}"


def _conditions(value: str, kind: exp.DataType, depth: int) -> Iterator[str]:
    part, length = f"v{depth}", length_of(kind.sql("spark"))
    if length is not None:
        yield f"rtrim(substring({value}, {length + 1})) = ''"
        return
    for of, inner in _parts(value, kind):
        conditions = list(_conditions(part if kind.this is not exp.DType.STRUCT else of, inner, depth + 1))
        if conditions and kind.this is exp.DType.STRUCT:
            yield from conditions
        elif conditions:
            yield f"forall({of}, {part} -> {' AND '.join(conditions)})"
    if kind.this is exp.DType.MAP and holds_lengths(kind.expressions[0].sql("spark")):
        keys = f"transform(map_keys({value}), {part} -> {_sized(part, kind.expressions[0], depth + 1)})"
        yield f"size(array_distinct({keys})) = size({value})"


def _sized(value: str, kind: exp.DataType, depth: int) -> str:
    part, text = f"v{depth}", kind.sql("spark")
    length = length_of(text)
    if length is not None:
        return f"rpad({value}, {length}, ' ')" if is_padded(text) else f"left({value}, {length})"
    if not holds_lengths(text):
        return value
    parts = list(_parts(value, kind))
    if kind.this is exp.DType.STRUCT:
        names = (field.name.replace("\\", "\\\\").replace("'", "\\'") for field in kind.expressions)
        fields = (f"'{name}', {_sized(of, inner, depth)}" for name, (of, inner) in zip(names, parts, strict=True))
        return f"CASE WHEN {value} IS NOT NULL THEN named_struct({', '.join(fields)}) END"
    arrays = [f"transform({of}, {part} -> {_sized(part, inner, depth + 1)})" for of, inner in parts]
    return arrays[0] if len(arrays) == 1 else f"map_from_arrays({', '.join(arrays)})"


def _parts(value: str, kind: exp.DataType) -> Iterator[tuple[str, exp.DataType]]:
    """Yield the parts of a value, with types: an array; the keys and the values of a map; the fields of a struct."""
    if kind.this is exp.DType.ARRAY:
        yield value, kind.expressions[0]
    elif kind.this is exp.DType.MAP:
        yield f"map_keys({value})", kind.expressions[0]
        yield f"map_values({value})", kind.expressions[1]
    elif kind.this is exp.DType.STRUCT:
        for field in kind.expressions:
            yield f"{value}.{quoted(field.name)}", field.args["kind"]
