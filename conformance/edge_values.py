"""The types whose values Spark and the driver are compared with, and edge cases of each."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

_UTC: Final = dt.UTC
_TIMES: Final = [
    None if text is None else dt.datetime.fromisoformat(text)
    for text in (
        "0001-01-01T00:00:00", "1582-10-10T12:00:00", "1899-12-31T23:59:59.999999", "1969-12-31T23:59:59.999999",
        "1970-01-01T00:00:00", "2024-02-29T13:07:05.000001", "2026-11-22T00:00:00", "9999-12-31T23:59:59.999999", None,
    )
]  # fmt: skip
VALUES: Final[Mapping[str, Sequence[Any]]] = {
    "tinyint": [-128, -7, -1, 0, 1, 3, 127, None],
    "smallint": [-32768, -7, 0, 2, 32767, None],
    "int": [-(2**31), -7, -1, 0, 1, 2, 10, 2**31 - 1, None],
    "bigint": [-(2**63), -7, -1, 0, 1, 2, 60_000_000, 2**62, 2**63 - 1, None],
    "double": [-math.inf, -2.5, -0.0, 0.0, 0.1, 1.0, 3.0, 1e300, math.inf, math.nan, None],
    "float": [-math.inf, -2.5, -0.0, 0.0, 0.5, 3.0, math.inf, math.nan, None],
    "decimal(10,2)": [Decimal("-99999999.99"), Decimal("0.00"), Decimal("0.01"), Decimal("12.50"), None],
    "decimal(5,4)": [Decimal("-1.0001"), Decimal(0), Decimal("9.9999"), None],
    "boolean": [True, False, None],
    "string": ["", "a", "A", "ab", "é", "e\u0301", "😀", "z'", '"', "%", " \t\u00a0 b \u2003 ", "\\", " ", "10", None],
    "date": [time and time.date() for time in _TIMES],
    "timestamp": [time and time.replace(tzinfo=_UTC) for time in _TIMES],
    "timestamp_ntz": _TIMES,
}
"""Edge cases of the types that an expression on the driver may use."""

_MORE_TIMES: Final = [
    dt.datetime.fromisoformat(text)
    for text in (
        "1582-10-04T23:59:59.999999", "1582-10-15T00:00:00", "1900-02-28T23:59:59", "2000-02-29T00:00:00",
        "2023-12-31T23:59:59.999999", "2024-03-31T01:30:00", "2024-03-31T02:30:00", "2024-10-27T02:30:00",
        "1916-05-01T00:00:00", "0999-12-31T23:59:59", "1000-01-01T00:00:00", "0004-02-29T12:00:00",
    )
]  # fmt: skip
_GREATEST: Final = Decimal(10**38 - 1)
EDGES: Final[Mapping[str, Sequence[Any]]] = {
    **VALUES,
    "float": [*VALUES["float"], 3.4028234663852886e38, 1.401298464324817e-45, 0.10000000149011612, 16777216.0],
    "double": [*VALUES["double"], 1.7976931348623157e308, 5e-324, 9007199254740993.0, -9.223372036854775808e18, 0.5],
    "decimal(18,0)": [None, 0, 1, -1, 10**18 - 1, 1 - 10**18],
    "decimal(34,10)": [None, 0, Decimal("1E-10"), 10**24 - 1, 1 - 10**24],
    "decimal(38,0)": [None, 0, 1, -7, _GREATEST, _GREATEST.copy_negate(), 2**63],
    "decimal(38,2)": [None, 0, 7, 10**36 - 1, Decimal("-123456789012345678901234567890123456.78")],
    "decimal(38,18)": [None, 0, Decimal("1E-18"), Decimal("-2.5"), Decimal("99999999999999999999.999999999999999999"),
    Decimal("0.1")],
    "decimal(38,38)": [None, 0, Decimal("0.5"), Decimal("-0.00000000000000000000000000000000000001")],
    "string": [
        *VALUES["string"], "-1", " 12 ", "1e3", "1.50", "2147483648", "NaN", "true", "2024-02-29", "2024-02-30",
        "2024-02-29 13:07:05", "ﬀ", "İ", "ß", "\n", "a\tb", "zz" * 40, "_", "a%b", "+7", "1e400", "-inf", ".5f", "1 2",
        "2024-02-29T13:07:05.25Z", "2024-2-9", "2024-01-01T00:00:00+02:00", "t", " no", "ΑΣ", "ŉǅ", "b\r\n", "a,b|c",
        '{"a": 1, "b": {"a": "é"}}', '{"a":"x","a":2}', '{"a":1.50}', '{"a":[1,"😀"]}', '{"a":"\\u00e9"}', "{'a':1}",
    ],
    "date": [*VALUES["date"], *(time.date() for time in _MORE_TIMES)],
    "timestamp": [*VALUES["timestamp"], *(time.replace(tzinfo=_UTC) for time in _MORE_TIMES)],
    "timestamp_ntz": [*VALUES["timestamp_ntz"], *_MORE_TIMES],
    "binary": [None, b"", b"a", b"\xff", b"\x00a", "é".encode()],
    "array<int>": [None, [], [1], [None, 2**31 - 1, -1], [3, 3, None]],
    "array<string>": [None, [], ["a", None, ""], ["z'"], ["é", "e\u0301", "😀"]],
    "array<double>": [None, [], [0.0, -0.0, math.nan, None, math.inf], [1.5]],
    "array<timestamp>": [None, [], [_MORE_TIMES[0].replace(tzinfo=_UTC), None]],
    "array<struct<x: int, y: string>>": [None, [], [{"x": 2, "y": "a"}, None, {"x": None, "y": "b"}, {"x": 2,
    "y": None}]],
    "map<string,int>": [None, [], [("a", 1), ("", None)], [("é", 2**31 - 1)]],
    "map<int,array<string>>": [None, [], [(1, ["a"]), (-1, None)]],
    "struct<x: int, y: string>": [None, {"x": 1, "y": "a"}, {"x": 2**31 - 1, "y": None}, {"x": None, "y": ""}],
    "struct<s: struct<d: double, t: timestamp>, l: array<int>>": [
        None, {"s": None, "l": [1]}, {"s": {"d": -0.0, "t": _MORE_TIMES[1].replace(tzinfo=_UTC)}, "l": None},
        {"s": {"d": math.nan, "t": None}, "l": [None]},
    ],
}  # fmt: skip
"""Edge cases of all types that columns may have on the driver; there are no columns of intervals."""
