"""Expressions over edge values: the examples of Spark's documentation, with each literal replaced in turn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final
from zlib import crc32

from tests.queries.spark_examples import Example

NUMBERS: Final = (
    "NULL", "0", "-1", "2147483647", "-2147483648", "0.5D", "2.5D", "1e300D", "DOUBLE('NaN')", "-0.005BD",
    "9223372036854775807L",
)  # fmt: skip
TEXTS: Final = (
    "NULL",
    "''",
    "' 12 '",
    "'1e400'",
    "'äß😀İ'",
    "'a\\u0000b'",
    "'('",
    "'0001-01-01'",
    "'10000-01-01 24:00:00'",
)
TIMES: Final = ("0001-01-01", "1582-10-10", "1969-12-31 23:59:59.999999", "2024-02-29", "9999-12-31 23:59:59.999999")
EDGES: Final = {
    "TINYINT": ("-128Y", "0Y", "127Y"),
    "SMALLINT": ("-32768S", "0S", "32767S"),
    "INT": ("-2147483648", "-1", "0", "2147483647"),
    "BIGINT": ("BIGINT('-9223372036854775808')", "-1L", "0L", "9007199254740993L", "9223372036854775807L"),
    "FLOAT": (
        "FLOAT('-0.0')", "FLOAT('0.1')", "FLOAT('3.4e38')", "FLOAT('1e-45')", "FLOAT('16777217')", "FLOAT('NaN')",
        "FLOAT('Infinity')",
    ),
    "DOUBLE": (
        "-0.0D", "0.1D", "0.5D", "1.5D", "2.5D", "-2.5D", "1e7D", "1e-3D", "2147483648D", "9.223372036854775807E18D",
        "-9.3E18D", "1e300D", "-1e300D", "4.9e-324D", "1.7976931348623157E308D", "2e23D", "DOUBLE('NaN')",
        "DOUBLE('Infinity')", "DOUBLE('-Infinity')",
    ),
    "DECIMAL(38, 0)": ("99999999999999999999999999999999999999BD", "-99999999999999999999999999999999999999BD", "0BD"),
    "DECIMAL(10, 2)": ("DECIMAL(-0.5)", "99999999.99BD", "-0.01BD", "1e3BD"),
    "DECIMAL(38, 18)": ("12345678901234567890.123456789012345678BD",),
    "STRING": (
        *TEXTS, "' '", "'-0'", "'NaN'", "'2024-02-30'", "'t'",
        "' yes '", "'1.5'", "'0x1F'", "'1_000'", "'1d'", "'.5'", "'5.'", "'+7'", "'9223372036854775808'",
        "'12:34'", "'2024'", "'2024-2-9'", "'2024-02-29T12:00:00Z'", "'2024-02-29 12:00:00.1234567'", "'epoch'",
        "'12:00'", "'2024-01-01 12:00:00 Europe/Paris'", "'\\u00a07'", "'1\\n'", "'-99999-01-01'", "'294247-01-10'",
    ),
    "BOOLEAN": ("true", "false"),
    "BINARY": ("X''", "X'00FF'", "X'C3'"),
    "DATE": tuple(f"DATE'{text[:10]}'" for text in TIMES),
    "TIMESTAMP": tuple(f"TIMESTAMP'{text}'" for text in TIMES),
    "TIMESTAMP_NTZ": tuple(f"TIMESTAMP_NTZ'{text}'" for text in TIMES),
    "INTERVAL DAY TO SECOND": ("INTERVAL '0' SECOND", "INTERVAL '-106751991' DAY", "INTERVAL '1.000001' SECOND"),
    "INTERVAL YEAR TO MONTH": ("INTERVAL '0' MONTH", "INTERVAL '-178956970' YEAR", "INTERVAL '14' MONTH"),
    "ARRAY<INT>": ("array()", "array(1, NULL)"),
    "MAP<STRING, INT>": ("map()", "map('a', NULL)"),
    "STRUCT<a: INT>": ("named_struct('a', 1)", "named_struct('a', CAST(NULL AS INT))"),
    "VARIANT": ("parse_json('1e300')", "parse_json('[1, null]')", "parse_json('\"2024-02-29\"')", "parse_json('null')"),
}  # fmt: skip
"""Edge values by type."""
TYPES: Final = (*EDGES, "DECIMAL(5, 2)")
PLAIN: Final = ("TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(38, 0)", "DECIMAL(10, 2)", "DECIMAL(38, 18)")
OPERATORS: Final = ("+", "-", "*", "/", "%", "DIV", "=", "<", "<=>")
OTHERS: Final = ("-1", "0.5D", "FLOAT('0.1')", "99999999.99BD", "9223372036854775807L")
OF_ONE: Final = ("floor", "ceil", "round", "bround", "abs", "-", "sign", "hash", "to_json")
OF_TIMES: Final = (
    "{0} + {1}", "{0} - {1}", "{1} * {2}", "{1} / {2}", "{0} - TIMESTAMP'1970-01-01'", "date_trunc('WEEK', {0})",
    "date_trunc('QUARTER', {0})", "date_format({0}, 'yyyy-MM-dd EEE D Q SSSSSS')", "EXTRACT(WEEK FROM {0})",
    "EXTRACT(YEAROFWEEK FROM {0})", "unix_micros(CAST({0} AS TIMESTAMP))", "extract(DOW FROM {0})", "date_add({0}, 1)",
    "months_between({0}, DATE'2024-02-29')", "add_months({0}, -1)", "extract(SECOND FROM {0})",
    "from_utc_timestamp({0}, 'Europe/Paris')", "to_utc_timestamp({0}, 'America/New_York')", "last_day({0})",
)  # fmt: skip
_LITERAL: Final = re.compile(
    r"(?<![\w.\\])(?:-?\d[\d.]*(?:e[+-]?\d+)?[LDSY]?(?:BD)?(?![\w.'])|r?'(?:[^'\\]|\\.)*')", re.IGNORECASE
)
_BARE: Final = re.compile(r"(?<![\w.`'])(?:DATE|TIMESTAMP(?:_NTZ|_LTZ)?|INTERVAL|TIME|X)\s*$", re.IGNORECASE)
_OPAQUE: Final = re.compile(r"^(kll|theta|tuple|hll|approx_top|st_|bitmap|aes|try_aes)")
"""Functions of sketches and the like, whose other arguments are no plain values: their examples only."""
_RANDOM: Final = "aes_encrypt("
"""Without a vector of its own, it makes one up."""
SHARE: Final = 4
"""One in so many is compared, chosen by its text; of the examples, all."""


def edge_expressions(examples: Iterable[Example]) -> list[str]:
    """Return expressions, each once."""
    found, edges, seen = list[str](), list(_of_types()), set[str]()
    for example in examples:
        whole = example.text + (f" FROM {example.source}" if example.source else "")
        if _RANDOM in whole or (example.source and not example.source.upper().startswith("VALUES")):
            continue
        found.append(whole)
        if example.function not in seen and not _OPAQUE.match(example.function):
            edges += _replaced(whole)
        seen.add(example.function)
    return list(dict.fromkeys(found + [text for text in edges if crc32(text.encode()) % SHARE == 0]))


def _replaced(text: str) -> Iterator[str]:
    for at in list(_LITERAL.finditer(text))[:2]:
        before, after = text[: at.start()], text[at.end() :]
        if _BARE.search(before):
            continue
        for edge in TEXTS if "'" in at[0] else NUMBERS:
            yield before + edge + after


def _of_types() -> Iterator[str]:
    for of, values in EDGES.items():
        for value in values:
            yield from (f"CAST({value} AS {to})" for to in TYPES if to != of)
            yield from (f"TRY_CAST({value} AS {to})" for to in ("INT", "DOUBLE", "TIMESTAMP") if of == "STRING")
    for of in PLAIN:
        for one in EDGES[of]:
            yield from (
                f"{name}({one})" for name in ("floor", "ceil", "round", "bround", "abs", "-", "sign", "hash", "to_json")
            )
            yield from (f"{one} {sign} {other}" for sign in OPERATORS for other in OTHERS)
            yield from (f"{name}({one}, {scale})" for name in ("floor", "ceil", "round") for scale in (2, -2))
            yield f"format_number({one}, 2)"
    spans = (*EDGES["INTERVAL DAY TO SECOND"], *EDGES["INTERVAL YEAR TO MONTH"])
    for of in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        for time in EDGES[of]:
            for text in OF_TIMES:
                for span in spans if "{1}" in text else ("",):
                    yield text.format(time, span, 3)
