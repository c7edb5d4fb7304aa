"""The greatest size that a function may give a text or an array, by a number: ``repeat(t, n)``, ``sequence(a, b)``.

Java ends, or hangs, if it is to make a value of billions of characters or elements. So the text for Spark tests the
number, inside of the call: what is beyond `MOST` fails as a value does that cannot be computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from rowtime.sql.intervals import Duration, span_of
from rowtime.sql.numbers import whole_number

MOST = 10_000_000
"""The number of characters or elements."""
TOO_LARGE: Final = "a text or an array has too many characters or elements"
"""Why such a call fails."""
_COUNTED: Final = {
    "SPACE": 0,
    "REPEAT": 1,
    "LPAD": 1,
    "RPAD": 1,
    "ARRAY_REPEAT": 1,
    "ARRAY_INSERT": 1,
    "FORMAT_NUMBER": 1,
}
"""Functions, and which of their arguments is a number of characters or elements."""
_FORMATTED: Final = ("FORMAT_STRING", "PRINTF")
_WIDE: Final = "%[^%a-zA-Z]*[1-9][0-9]{7}"
"""A number of characters in a format; `check` refuses it in a literal one (`core.text_patterns`)."""
_PLACED: Final = {"ELEMENT_AT": 1, "TRY_ELEMENT_AT": 1, "SPLIT_PART": 2}
"""Functions, and which of their arguments is the place of an element."""
_LEAST: Final = -(2**31)
_ELEMENTS: Final = 1_000_000_000
"""More than an array can have; twice as many are an INT."""
MOST_DIGITS: Final = 2000
"""More than the digits of a DOUBLE before its point, and behind it."""
BEYOND: Final = "there is no element at this place"
"""Why such a call fails."""


def too_large(root: exp.Expr) -> Iterator[exp.Anonymous]:
    """Yield the calls in an expression that give such a value for every row, by their literals."""
    for call in root.find_all(exp.Anonymous):
        place = _COUNTED.get(call.name.upper(), len(call.expressions))
        count = _whole(call.expressions[place]) if place < len(call.expressions) else _steps(call)
        if count is not None and abs(count) > MOST:
            yield call


def limited(call: exp.Anonymous, texts: list[str]) -> list[str]:
    """Return the arguments of a call as Spark SQL, ``texts``, with a test of its size or place if it needs one."""
    name, place = call.name.upper(), _COUNTED.get(call.name.upper(), len(texts))
    if name in _PLACED:
        return _placed(call, texts)
    if name == "SLICE" and len(texts) > 2:  # noqa: PLR2004 - array, place and length
        return [*texts[:2], sliced(call.expressions[2], texts[2])]
    if name == "BROUND":
        return [
            *texts[:1],
            *(rounded_at(part, text) for part, text in zip(call.expressions[1:], texts[1:], strict=True)),
        ]
    if name == "FORMAT_NUMBER" and len(texts) > 1:  # the second argument may be a pattern
        text, count = isinstance(call.expressions[1].unnest(), exp.Literal), _whole(call.expressions[1])
        if not fails_for(call.expressions[1], TOO_LARGE) and (not text if count is None else abs(count) > MOST):
            number = f"typeof({texts[1]}) <> 'string' AND try_cast(CAST({texts[1]} AS STRING) AS DECIMAL(20, 0))"
            texts[1] = _tested(number, texts[1])
    elif name in _FORMATTED and texts:
        format_given = call.expressions[0].unnest()
        if not fails_for(format_given, TOO_LARGE) and not isinstance(format_given, exp.Literal):
            wide = f"CASE WHEN {texts[0]} RLIKE '{_WIDE}' THEN raise_error('{TOO_LARGE}')"
            texts[0] = f"{wide} ELSE {texts[0]} END"
    elif place < len(texts):
        count, length = _whole(call.expressions[place]), f"CAST(octet_length({texts[0]}) AS BIGINT)"
        if name == "REPEAT":
            first = call.expressions[0]
            count = count * len(first.name) if count is not None and isinstance(first, exp.Literal) else None
        if (count is None or abs(count) > MOST) and not fails_for(call.expressions[place], TOO_LARGE):
            size = f"{length} * ({texts[1]})" if name == "REPEAT" else texts[place]
            texts[place] = _tested(f"abs(CAST({size} AS DECIMAL(20, 0)))", texts[place])
    elif name == "SEQUENCE" and len(texts) > 1 and not fails_for(call.expressions[1], TOO_LARGE):
        count = _steps(call)
        if count is None or count > MOST:
            texts[1] = _tested(_length(call, texts), texts[1])
    return texts


def fails_for(value: exp.Expr, why: str) -> bool:
    """Return True if a value is a CASE that fails for this reason, as in a text that has been written."""
    whole = value.unnest()
    results = [branch.args["true"] for branch in whole.args["ifs"]] if isinstance(whole, exp.Case) else []
    return any(
        isinstance(one, exp.Anonymous) and one.name.upper() == "RAISE_ERROR" and one.expressions[0].name == why
        for one in results
    )


def sliced(length: exp.Expr, text: str) -> str:
    """Return the length of a SLICE as Spark SQL; more than an array has is as much.

    Where Spark does not generate code, the sum of place and length would overflow, and the slice would be empty.
    """
    count = _whole(length)
    if f"> {_ELEMENTS} THEN {_ELEMENTS} ELSE" in text or (count is not None and count <= _ELEMENTS):
        return text
    return f"CASE WHEN {text} > {_ELEMENTS} THEN {_ELEMENTS} ELSE {text} END"


def rounded_at(place: exp.Expr, text: str) -> str:
    """Return the number of digits to round to, as Spark SQL; no number has a digit beyond `MOST_DIGITS`.

    Java would compute that many digits.
    """
    digits = _whole(place)
    if digits is not None:
        beyond = _LEAST <= digits < -_LEAST and abs(digits) > MOST_DIGITS
        return str(MOST_DIGITS if digits > 0 else -MOST_DIGITS) if beyond else text
    if isinstance(place.unnest(), exp.Literal | exp.Null) or place.find(exp.Column):  # of a column, Spark takes none
        return text
    ends = f"WHEN {text} > {MOST_DIGITS} THEN {MOST_DIGITS} WHEN {text} < -{MOST_DIGITS} THEN -{MOST_DIGITS}"
    return text if f"THEN -{MOST_DIGITS} ELSE" in text else f"CASE {ends} ELSE {text} END"


def _placed(call: exp.Anonymous, texts: list[str]) -> list[str]:
    """Return the arguments of a call that reads an element at a place: never the least INT.

    Spark takes its amount, which is none. Without it, the place is beyond any array, as it is for Spark.
    """
    place = _PLACED[call.name.upper()]
    literal = call.expressions[place] if place < len(texts) else None
    known = None if literal is None else _whole(literal)
    if literal is None or fails_for(literal, BEYOND) or (known is not None and known != _LEAST):
        return texts
    if isinstance(literal.unnest(), exp.Literal) and known is None:  # a key of a map
        return texts
    value = texts[place]
    if call.name.upper() == "SPLIT_PART":
        texts[place] = f"greatest({value}, {_LEAST + 1})"
        return texts
    instead = "NULL" if call.name.upper() == "TRY_ELEMENT_AT" else f"raise_error('{BEYOND}')"
    least = f"typeof({texts[0]}) LIKE 'array<%' AND try_cast(CAST({value} AS STRING) AS BIGINT) = {_LEAST}"
    texts[place] = f"CASE WHEN {least} THEN {instead} ELSE {value} END"
    return texts


def _tested(size: str, value: str) -> str:
    return f"CASE WHEN {size} > {MOST} THEN raise_error('{TOO_LARGE}') ELSE {value} END"


def _length(call: exp.Anonymous, texts: list[str]) -> str:
    """Return Spark SQL of the length of a sequence: of whole numbers, or of times in steps of a literal length.

    NULL for other sequences: steps of a day are few between any two times.
    """
    step = call.expressions[2] if len(texts) > 2 else None  # noqa: PLR2004 - start, end and step
    if step is not None and (micros := _micros(step)):
        first, last = (f"unix_micros(CAST({text} AS TIMESTAMP))" for text in texts[:2])
        return f"abs(CAST({last} AS DECIMAL(20, 0)) - {first}) / {micros}"
    first, last, by = (f"try_cast(CAST({text} AS STRING) AS DECIMAL(20, 0))" for text in (*texts, "1")[:3])
    return f"abs({last} - {first}) / greatest(abs({by}), 1)"


def _steps(call: exp.Anonymous) -> int | None:
    """Return the length of a sequence of literal numbers; ``None`` for anything else."""
    given = call.expressions if call.name.upper() == "SEQUENCE" else []
    numbers = [_whole(part) for part in given]
    if len(given) < 2 or None in numbers:  # noqa: PLR2004 - start and end
        return None
    first, last, by = (*(number or 0 for number in numbers), 1)[:3]
    return abs(last - first) // max(abs(by), 1)


def _micros(step: exp.Expr) -> int:
    """Return the length of a literal interval (µs); 0 for anything else, and for months."""
    inner = step.unnest()
    try:
        span = span_of(inner.this.unnest() if isinstance(inner, exp.Neg) else inner)
    except (ValueError, AttributeError):
        return 0
    return abs(span.micros) if isinstance(span, Duration) else 0


def _whole(node: exp.Expr) -> int | None:
    inner = node.unnest()
    number = whole_number(inner.this.unnest() if isinstance(inner, exp.Neg) else inner)
    return None if number is None else -number if isinstance(inner, exp.Neg) else number
