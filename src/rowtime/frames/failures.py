"""Errors of Spark that say that something cannot be computed for a value."""

from __future__ import annotations

import re

_OF_A_VALUE = re.compile(
    r"SQLSTATE: (?:22[0-9A-Z]{3}|23505|54000|P0001)"  # data, a key twice in a map, a list too long, `raise_error`
    r"|INVALID_FORMAT\.|UNSUPPORTED_FEATURE\.AES_MODE|DATETIME_PATTERN_RECOGNITION|of MapData must have the same length"
    r"|Illegal sequence boundaries|java\.util\.regex\.PatternSyntax|java\.util\.\w*Format\w*Exception"
    r"|java\.lang\.(?:Arithmetic|ClassCast|IllegalArgument|NegativeArraySize|NumberFormat|\w*IndexOutOfBounds)Exception"
    r"|java\.lang\.reflect\.InvocationTarget|UDFXPathUtil|com\.fasterxml\.jackson\."
)
"""What Spark says of a value, with a state of SQL or as Java does: a text that is no pattern, a step of 0."""


def of_a_value(error: BaseException) -> bool:
    """Return True for an error of Spark that says that something cannot be computed for a value."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # noqa: PLC0415 - no types; as below
    from pyspark import errors  # noqa: PLC0415 - `check` does without Spark

    javas = (errors.ArithmeticException, errors.ArrayIndexOutOfBoundsException, errors.DateTimeException)
    if isinstance(error, (*javas, errors.IllegalArgumentException, errors.NumberFormatException)):
        return True  # the message does not have Java's name
    return isinstance(error, errors.PySparkException | Py4JJavaError) and _OF_A_VALUE.search(str(error)) is not None
