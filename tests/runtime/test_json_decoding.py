"""Arrow decodes JSON only where Spark reads the very same rows."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowtime.runtime.sources.json_decoding import PlainJson
from tests.runtime.decoded_files import both_ways, rows_of, shown, source_of, utc
from tests.runtime.test_json_numbers import TEXTS, near_times

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = {
    "i": "BIGINT", "j": "INT", "k": "TINYINT", "d": "DOUBLE", "f": "FLOAT", "n": "DECIMAL(5, 2)", "b": "BOOLEAN",
    "s": "STRING", "day": "DATE", "ev": "TIMESTAMP", "ms": "TIMESTAMP",
}  # fmt: skip
UNITS = {"resolution": "ms MILLISECONDS"}
GOOD = {
    "i": "7", "j": "-8", "k": "9", "d": "0.5", "f": "1.25", "n": "12.25", "b": "true", "s": '"plain"',
    "day": '"2024-02-29"', "ev": '"2024-02-29T10:11:12.123456Z"', "ms": "1709201472123",
}  # fmt: skip
NUMBERS = ("0", "-0", "-0.0", "0.0", "1.0", "1e2", "1E-2", "007", "+7", ".5", "5.", "9223372036854775807", "1e39",
           "9223372036854775808", "-9223372036854775808", "2147483648", "128", "200", "NaN", "Infinity", "-Infinity",
           "Inf", "INF", "1e400", "-1e400", "1e-400", "4.9e-324", "3.4028236e38", "16777217", "0.1234567890123456789",
           "9007199254740993", "123456789012345678901234567890", "1e-46", "0x1F", "1_000", "999.99", "1000", "0.125",
           "0.005", "1.50", "1.500", "1e2147483648", "12345")  # fmt: skip
ANY = ("null", "true", "false", "True", '"7"', '"true"', '""', "{}", "[]", '{"a": 1}', "[1, 2]", "'x'", "x", "", '"')
TOKENS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("i", "j", "k", "d", "f", "n"), (*NUMBERS, *ANY)),
    "b": ANY,
    "s": (*ANY, '"a\\u0041"', '"\\ud83d\\ude00"', '"\\ud800"', '"a\\/b"',
          '"a\\xb"', '"a\tb"', '"a\\tb"', '"\\u0000"', '"é"',
          '"\u2028"', '"\ufeff"', "17", "1.50", '"NaN,"', '" Inf, "', '"{"', '"}"', '"a\\"b"', '"\x7f"'),
    "day": (*ANY, "19782", '"2024-02-30"', '"2024-2-9"', '"0001-01-01"', '"1582-10-10"', '"9999-12-31"', '"2024"',
            '"2024-02-29T10"', '"20240229"'),
    "ev": (*(json.dumps(text) for text in (*TEXTS, *near_times(300))), *ANY, "17", "-5", "1733932800", "1e3", "1.5",
           "253402300799", "253402300800", "-62135596800", "-62135596801", '"1500-02-29T00:00:00Z"',
           '"1582-10-10T00:00:00Z"', '"2024-02-29T10:11:12+17:59"', '"2024-02-29T10:11:12+18:00"'),
    "ms": (*ANY, "-1", "0", "253402300799999", "253402300800000", '"2024-02-29T10:11:12Z"', '"1709201472123"'),
}  # fmt: skip
WHOLE: tuple[str | bytes, ...] = (
    "", "\n", "{good}", "{good}\n\n{good}\n", "\n{good}\n", " {good}\n", "{good} \n",
    "{good}\r\n{good}\r\n", "{good}\r{good}",
    "{good}{good}\n", "{good}\n{good}", "[{good}]", "{good},\n{good}", '{"i": 1\n, "j": 2}',
    '{"i": 1, "i": 2}', '{"x": 1, "x": 2}',
    '{"I": 1}', "{}", '{"x": Inf}', '{"x": NaN}', '{"x": "NaN"}', '{"x": {"y": [1, {"z": null}]}, "i": 3}', '{"i": 1,}',
    '{"i": 1} // said', '{"i": 1} x}', '{"i": 1}{"j": [{}\n{}]}', "\ufeff{good}", '{"x": "\ufffd"}',
    b'{"s": "\xff"}', b'{"x": "\xff"}',
    '{"x": ' + "[" * 300 + "]" * 300 + "}", '{"x": ' + "1" * 990 + "}", '{"s": "' + "y" * 2000 + '"}', '{"\\u0069": 4}',
    '{"i": 1}\n{"i": "x"}\n{"i": 3}', '{"ev": 5}\n{"ev": "2024-01-01T00:00:00Z"}', '{"ev": null}\n{"ev": 5}',
)  # fmt: skip


def record(column: str = "", token: str = "") -> str:
    return "{" + ", ".join(f'"{name}": {token if name == column else good}' for name, good in GOOD.items()) + "}"


def test_a_record_that_arrow_decodes_is_the_row_that_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    lines = [record(name, token) for name, tokens in TOKENS.items() for token in tokens]
    (tmp_path / "all.json").write_bytes("\n".join(lines).encode())
    expected = rows_of(source_of(tmp_path / "all.json", COLUMNS, UNITS, "json", plain=False), utc(spark), COLUMNS)
    assert len(expected) == len(lines)
    plain = PlainJson.of(COLUMNS, UNITS)
    assert plain is not None
    tables = []
    for number, text in enumerate(lines):
        (tmp_path / "one.json").write_bytes(text.encode())
        if plain.decode(str(tmp_path / "one.json"), tmp_path / "one.parquet") is not None:
            tables.append(pq.read_table(tmp_path / "one.parquet").append_column("__p", [[number]]))
    decoded = utc(spark).createDataFrame(pa.concat_tables(tables))
    found = {row["__p"]: row for row in shown(decoded, COLUMNS).collect()}
    assert [(lines[p], row, expected[p]) for p, row in found.items() if row != expected[p]] == []
    assert len(lines) * 0.15 < len(found) < len(lines) * 0.8


def test_odd_files_have_the_same_rows_however_they_are_read(spark: SparkSession, tmp_path: Path) -> None:
    texts = [text.replace("{good}", record()) if isinstance(text, str) else text for text in WHOLE]
    assert both_ways(spark, tmp_path, texts, COLUMNS, UNITS, "json") == 14


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_random_files_have_the_same_rows_however_they_are_read(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    tokens = [(name, token) for name, each in TOKENS.items() for token in each]
    texts = []
    for _ in range(60):
        odd = [chance.choice(tokens) if chance.random() < 0.1 else ("", "") for _ in range(chance.randrange(1, 12))]
        texts.append(chance.choice(("\n", "\n", "\r\n")).join(record(*token) for token in odd))
    assert both_ways(spark, tmp_path, texts, COLUMNS, UNITS, "json") > 0
