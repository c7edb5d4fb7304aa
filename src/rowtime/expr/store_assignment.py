"""Store assignment: which values of one type a column of another type accepts (Spark's ANSI rules).

An assignment that fits for some values casts them; a value that does not fit is an error of its row, never another
value. A text fits no number and no time, whatever its content. A type that only Spark can parse is unknown: then
nothing is promised and nothing refused.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import starmap

from sqlglot import exp
from sqlglot.errors import SqlglotError

from rowtime.sql.dialect import Rowtime

_D = exp.DType
_WHOLE = {_D.TINYINT: 3, _D.SMALLINT: 5, _D.INT: 10, _D.BIGINT: 19}  # and the number of digits of their values
_FLOATING = {_D.FLOAT: 1, _D.DOUBLE: 2}
_DATES = (_D.DATE, _D.TIMESTAMPTZ, _D.TIMESTAMPLTZ, _D.TIMESTAMPNTZ, _D.TIME)
_TEXTS = (_D.TEXT, _D.VARCHAR, _D.CHAR)
_ALIASES = {_D.TIMESTAMPLTZ: _D.TIMESTAMPTZ}
_SIZED = re.compile(r"\b(VAR)?CHAR(ACTER)?\s*\(\s*\d+\s*\)", re.IGNORECASE)
_NULL = "VOID"  # the type of NULL alone


def same_type(one: str, other: str) -> bool:
    """Return True for two spellings of one type."""
    if one.casefold() == other.casefold():
        return True
    first, second = type_of(one), type_of(other)
    return first is not None and second is not None and _text(first) == _text(second)


def may_assign(given: str, target: str) -> bool | None:
    """Return True if some value of the ``given`` type fits the ``target``; ``None`` if only Spark knows."""
    if given.upper() == _NULL:
        return True
    first, second = type_of(given), type_of(target)
    return None if first is None or second is None else _may(first, second)


def always_fits(given: str, target: str) -> bool:
    """Return True if every value of the ``given`` type fits the ``target``; False if only Spark knows."""
    if given.upper() == _NULL or same_type(given, target):
        return True
    first, second = type_of(given), type_of(target)
    return first is not None and second is not None and bool(_may(first, second)) and _fits(first, second)


def length_of(target: str) -> int | None:
    """Return the length of a CHAR or VARCHAR in characters; ``None`` for any other type."""
    kind = type_of(target)
    return _numbers(kind)[0] if kind is not None and kind.this in (_D.CHAR, _D.VARCHAR) and _numbers(kind) else None


def is_padded(target: str) -> bool:
    """Return True for CHAR, whose values are padded to its length."""
    kind = type_of(target)
    return kind is not None and kind.this is _D.CHAR and bool(_numbers(kind))


def as_read(text: str) -> str:
    """Return a type as Spark reads it from files: CHAR and VARCHAR are STRING, and rowtime checks the length later."""
    return _SIZED.sub("STRING", text)


def is_nested(target: str) -> bool:
    """Return True for an array, a map or a struct."""
    kind = type_of(target)
    return kind is None or kind.this in (_D.ARRAY, _D.MAP, _D.STRUCT)


@lru_cache(maxsize=4096)
def type_of(text: str) -> exp.DataType | None:
    """Return a type as a tree; ``None`` if only Spark can parse it."""
    try:
        kind = exp.DataType.build(text, dialect=Rowtime())
    except (SqlglotError, ValueError):
        return None
    return kind if isinstance(kind, exp.DataType) else None


def _text(kind: exp.DataType) -> str:
    if kind.this is _D.DECIMAL:
        return "DECIMAL({}, {})".format(*_decimal(kind))
    if kind.this in (_D.ARRAY, _D.MAP):
        return f"{kind.this.value}<{', '.join(map(_text, _parts(kind)))}>"
    if kind.this is _D.STRUCT:
        names = (part.name.casefold() for part in kind.expressions)
        return f"STRUCT<{', '.join(f'{name}: {_text(part)}' for name, part in zip(names, _parts(kind), strict=True))}>"
    if kind.this in _ALIASES:
        return _text(exp.DataType(this=_ALIASES[kind.this]))
    return kind.sql(Rowtime()).upper()


def _may(given: exp.DataType, target: exp.DataType) -> bool:
    kind, target_kind = given.this, target.this
    if _is_number(kind) and _is_number(target_kind):
        return True
    if target_kind in _TEXTS:
        return kind not in (_D.ARRAY, _D.MAP, _D.STRUCT)
    if kind in _DATES:
        return target_kind in _DATES
    if isinstance(kind, exp.Interval) or isinstance(target_kind, exp.Interval):
        return (
            isinstance(kind, exp.Interval)
            and isinstance(target_kind, exp.Interval)
            and _months(kind) == _months(target_kind)
        )
    if kind is target_kind and kind in (_D.ARRAY, _D.MAP, _D.STRUCT):
        parts = _parts(given), _parts(target)
        return len(parts[0]) == len(parts[1]) and all(starmap(_may, zip(*parts, strict=True)))
    return bool(kind == target_kind)


def _fits(given: exp.DataType, target: exp.DataType) -> bool:
    """Return True if a cast that is allowed never fails."""
    kind, target_kind = given.this, target.this
    if target_kind in (_D.VARCHAR, _D.CHAR):
        length = _numbers(given)[:1] if kind in (_D.VARCHAR, _D.CHAR) else []
        return bool(length) and length[0] <= (_numbers(target) or [0])[0]
    if kind in (_D.ARRAY, _D.MAP, _D.STRUCT) and kind is target_kind:
        return all(starmap(_fits, zip(_parts(given), _parts(target), strict=True)))
    if target_kind is _D.TEXT or target_kind in _FLOATING:
        return True
    if _is_number(kind):
        return kind not in _FLOATING and _digits_fit(given, target)
    days = (_D.DATE, _D.TIMESTAMPNTZ, _D.TIMESTAMPTZ, _D.TIMESTAMPLTZ)
    return bool(kind == target_kind) or (kind in days and target_kind in days)


def _digits_fit(given: exp.DataType, target: exp.DataType) -> bool:
    """Return True if a whole number or decimal has at most as many digits as another."""
    if given.this in _WHOLE and target.this in _WHOLE:
        return _WHOLE[given.this] <= _WHOLE[target.this]
    digits, part = (_WHOLE[given.this], 0) if given.this in _WHOLE else _decimal(given)
    if target.this in _WHOLE:  # a fraction is cut off; not every number with that many digits fits
        return digits - part < _WHOLE[target.this]
    most, places = _decimal(target)
    carried = 1 if part > places else 0  # 9.99 is rounded to 10.0
    return target.this is _D.DECIMAL and digits - part + carried <= most - places


def _is_number(kind: object) -> bool:
    return kind in _WHOLE or kind in _FLOATING or kind is _D.DECIMAL


def _parts(kind: exp.DataType) -> list[exp.DataType]:
    """Return the types inside: of elements, of keys and values, or of fields."""
    if kind.this is _D.STRUCT:
        return [part.args["kind"] for part in kind.expressions]
    return list(kind.expressions) if kind.this in (_D.ARRAY, _D.MAP) else []


def _numbers(kind: exp.DataType) -> list[int]:
    return [int(part.name) for part in kind.expressions if isinstance(part, exp.DataTypeParam)]


def _decimal(kind: exp.DataType) -> tuple[int, int]:
    digits, scale = ([*_numbers(kind), 0] if _numbers(kind) else [10, 0])[:2]
    return digits, scale


def _months(interval: exp.Interval) -> bool:
    return re.search("YEAR|MONTH", interval.sql().upper()) is not None
