"""Arrow decodes a CSV file only where Spark reads the very same rows."""

from __future__ import annotations

import gzip
import random
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowtime.runtime.sources import csv_decoding, plain_files
from rowtime.runtime.sources.csv_decoding import PlainCsv
from tests.runtime.decoded_files import both_ways, rows_of, shown, source_of, utc

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = {
    "i": "BIGINT", "j": "INT", "k": "TINYINT", "d": "DOUBLE", "f": "FLOAT", "b": "BOOLEAN", "s": "STRING",
    "day": "DATE", "ev": "TIMESTAMP",
}  # fmt: skip
GOOD = ("7", "-8", "9", "0.5", "1.25", "true", "plain", "2024-02-29", "2024-02-29 10:11:12.123456")
ODD = {
    "i": ("", "007", "+7", "-0", " 7", "7 ", "0x1F", "9223372036854775807", "9223372036854775808",
          "1e3", "1.0", "NULL"),
    "j": ("2147483647", "2147483648", "-2147483648", "x", "1_000", "٣"),
    "k": ("127", "128", "-128"),
    "d": ("", "1e5", "1E-5", ".5", "5.", "+1.5", "-0.0", "1d", "1f", "0x1p3", "NaN", "nan", "Inf", "-Infinity", "inf",
          "1e400", "1e-400", "4.9e-324", "0.1234567890123456789", "1,5"),
    "f": ("3.4028236e38", "1e39", "0.1", "16777217", "1e-46"),
    "b": ("", "TRUE", "False", "tRuE", "1", "0", "t", "yes"),
    "s": ("", "NULL", "N/A", " led", "trailed ", "two words", '"quoted"', 'in"side', "a\\b", "é", "\ufeffx", "tab\tbed",
          "car\rried", "zero\0", "#hash", "'single'", "-", "0x", "Zürich", "\u2028", "2024-01-01T00:00:00Z"),
    "day": ("", "2024-02-30", "2024-2-9", "0001-01-01", "1582-10-10", "9999-12-31", "0000-01-01", "10000-01-01",
            "2024-02-29T10", "20240229", "2024-02", "epoch"),
    "ev": ("", "2024-02-29", "2024-02-29 10", "2024-02-29 10:11", "2024-02-29T10:11:12", "2024-02-29 10:11:12.1",
           "2024-02-29 10:11:12.1234567", "2024-02-29 1011", "2024-02-29 101112", "2024-02-29 24:00:00",
           "2024-02-29 10:11:60", "2024-02-29T10:11:12Z", "2024-02-29 10:11:12+05:30", "2024-02-29 10:11:12-00:30",
           "2024-02-29T10:11:12+0530", "2024-02-29T10:11:12+05", "2024-02-29 10:11:12 UTC", "2024-02-29  10:11:12",
           "2024-02-29t10:11:12", "2024-02-30 10:11:12", "0001-01-01 00:00:00", "1582-10-10 00:00:00",
           "1890-01-01 00:00:00.5", "9999-12-31 23:59:59.999999", "0000-12-31 00:00:00", "12024-01-01 00:00:00",
           "-2024-01-01 00:00:00", "2024-02-29 10:11:12.", "now", "1709201472", "T10:11:12", "10:11:12"),
}  # fmt: skip
WHOLE = ("", "\n", "\n\n", "{good}", "{good}\n\n{good}\n", "\n{good}\n", "  \n{good}\n", "{good}\n   \n", "{good},\n",
         "{good},9\n", "7\n", "{good}\r\n{good}\r\n", "{good}\r{good}", ",,,,,,,,\n", "{good} \n", " {good}\n",
         "\ufeff{good}\n", "{good}\nx{good}\n", "{good}\n7,8\n{good}\n")  # fmt: skip


def line(column: str = "", token: str = "") -> str:
    return ",".join(token if name == column else good for name, good in zip(COLUMNS, GOOD, strict=True))


def test_a_line_that_arrow_decodes_is_the_row_that_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    lines = [line(name, token) for name, tokens in ODD.items() for token in tokens if "\r" not in token]
    (tmp_path / "all.csv").write_bytes("\n".join(lines).encode())
    expected = rows_of(source_of(tmp_path / "all.csv", COLUMNS, {}, plain=False), utc(spark), COLUMNS)
    plain = PlainCsv.of(COLUMNS, {})
    assert plain is not None
    tables = []
    for number, text in enumerate(lines):
        (tmp_path / "one.csv").write_bytes(text.encode())
        if plain.decode(str(tmp_path / "one.csv"), tmp_path / "one.parquet") is not None:
            tables.append(pq.read_table(tmp_path / "one.parquet").append_column("__p", [[number]]))
    decoded = utc(spark).createDataFrame(pa.concat_tables(tables))
    found = {row["__p"]: row for row in shown(decoded, COLUMNS).collect()}
    assert [(row, expected[p]) for p, row in found.items() if row != expected[p]] == []
    assert len(lines) * 0.3 < len(found) < len(lines) * 0.8


def test_odd_files_have_the_same_rows_however_they_are_read(spark: SparkSession, tmp_path: Path) -> None:
    assert both_ways(spark, tmp_path, [text.format(good=line()) for text in WHOLE], COLUMNS, {}) == 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_random_files_have_the_same_rows_however_they_are_read(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    tokens = [(name, token) for name, found in ODD.items() for token in found]
    texts = []
    for _ in range(60):
        odd = [chance.choice(tokens) if chance.random() < 0.1 else ("", "") for _ in range(chance.randrange(1, 12))]
        texts.append(chance.choice(("\n", "\n", "\r\n")).join(line(*token) for token in odd))
    assert both_ways(spark, tmp_path, texts, COLUMNS, {}) > 0


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_columns_with_a_header_and_other_separators_are_the_same_both_ways(
    spark: SparkSession, tmp_path: Path, separator: str
) -> None:
    columns = {"a": "BIGINT", "B": "STRING", "missing": "DATE"}
    texts = ["b,more,A\nx,1,2\n", "A,b\n1,x\n2\n", "a\n1\n\n2\n", "a,b\n", '"a",b\n1,2\n', "\na\n1\n"]
    texts = [text.replace(",", separator) for text in texts]
    texts += [text.replace("\n", "\r\n") for text in texts]
    assert both_ways(spark, tmp_path, texts, columns, {"header": "true", "sep": separator}) >= 1


QUOTED: Final[dict[str, str]] = {"n": "INT", "s": "STRING", "d": "DOUBLE", "t": "STRING", "ev": "TIMESTAMP"}
ESCAPES: Final[list[dict[str, str]]] = [
    {},
    {"escape": '"'},
    {"multiLine": "true"},
    {"escape": '"', "multiLine": "true", "encoding": "UTF-8"},
    {"quote": '"', "escape": "\\", "header": "true"},
    {"escape": '"', "header": "true", "multiLine": "true"},
]
ODD_QUOTES: Final = (
    '"a"b', 'a"b', '"a" ', ' "a"', '"a"b"', '"', '""a', 'a""', '"""', '""""', '"a""b"', '"a"""', '"""a"', '""","',
    '",""', '"a,"",""b"', '"a\\"b"', '"a\\"', "a\\b", '"a\\b"', '"a\nb"', '"a""\nb"', '"a"\nb"', '"a\r\nb"',
    '"a\rb"', '" a"', '"a "',
    '"\n"', '"\n\n"', '"""a"" b"', '"a ""b"" c"', '"a, ""b"" 1"', '""""""', '"a\tb"', '"0x1"',
)  # fmt: skip


def field(chance: random.Random, *, doubled: bool, lines: bool) -> str:
    """A text in quotes, as writers of CSV quote it."""
    pieces = ["a", "b c", ",", "é", "'", "a, b", *(['""'] * 2 if doubled else []), *(["\n", "\n\n"] if lines else [])]
    return '"' + "".join(chance.choices(pieces, k=chance.randrange(4))) + '"'


@pytest.mark.parametrize("options", ESCAPES, ids=str)
def test_fields_in_quotes_are_the_same_both_ways(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_decoding, "LOOK", 64)  # quotes are open where a piece ends
    chance, texts = random.Random(str(options)), list[str]()
    doubled, lines = options.get("escape") == '"', "multiLine" in options
    for number in range(2 * len(ODD_QUOTES)):
        rows = [["n", '"s"', "d", "t", "ev"]] if "header" in options else []
        many = chance.randrange(1, 8)
        for nth in range(many):
            texts_of_row = [field(chance, doubled=doubled, lines=lines) for _ in range(2)]
            if number % 2 == 0 and nth == many // 2:
                texts_of_row[chance.randrange(2)] = ODD_QUOTES[number // 2]
            quotes = chance.choice(("", '"'))
            numbers = [f"{quotes}{nth}{quotes}", chance.choice(("0.5", '"1.5"', "", '""'))]
            if number % 9 == 1 and nth == many // 2:
                numbers[number // 9 % 2] = ('" 7"', '"7 "', '"0x1"', '"+7"')[number // 9 % 4]
            at = f"{quotes}2024-01-01 10:00:{nth:02}{quotes}"
            rows.append([numbers[0], texts_of_row[0], numbers[1], texts_of_row[1], at])
        texts.append("".join(",".join(row) + "\n" for row in rows).removesuffix("\n" * chance.randrange(2)))
    assert both_ways(spark, tmp_path, texts, QUOTED, options) >= 30


def test_options_that_change_what_quotes_mean_are_left_to_spark() -> None:
    for options in ({"quote": "'"}, {"escape": "'"}, {"multiLine": "yes"}, {"encoding": "UTF-16"}, {"comment": "#"}):
        assert PlainCsv.of(COLUMNS, options) is None


def test_compressed_files_are_the_same_both_ways(spark: SparkSession, tmp_path: Path) -> None:
    rows = [f'{n},"a, {n}"\n'.encode() for n in range(1000)]
    whole = gzip.compress(b"".join(rows))
    members = gzip.compress(b"".join(rows[:7])) + gzip.compress(b"") + gzip.compress(b"".join(rows[7:]))
    texts = [whole, members, gzip.compress(b""), gzip.compress(b'1,"x""y"\n')]
    assert both_ways(spark, tmp_path, texts, {"n": "INT", "s": "STRING"}, {}, zipped=".gz") == 2


def test_compressed_files_that_are_damaged_or_too_large_are_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = PlainCsv.of({"n": "INT"}, {})
    assert plain is not None
    whole = gzip.compress(b"1234567\n" * 1000)
    for name, content in {"cut": whole[:-9], "cut at the sum": whole[:-4], "changed": whole[:-8] + bytes(8)}.items():
        (tmp_path / f"{name}.csv.gz").write_bytes(content)
        assert plain.decode(str(tmp_path / f"{name}.csv.gz"), tmp_path / "copy.parquet") is None, name
    (tmp_path / "whole.csv.gz").write_bytes(whole)
    for most, rows in ((8000, 1000), (7999, None)):
        monkeypatch.setattr(plain_files, "MOST", most)
        assert plain.decode(str(tmp_path / "whole.csv.gz"), tmp_path / "copy.parquet") == rows
