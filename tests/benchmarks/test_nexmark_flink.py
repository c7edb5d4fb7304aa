"""Flink's input and results are converted to the same form as rowtime's."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa

from benchmarks.nexmark_flink import QUERIES, TEXTS, _as_text, _last_averages, _one_by_one, _plain, _two_files


def test_there_is_a_text_for_each_query_and_no_other() -> None:
    assert {path.stem for path in TEXTS.iterdir()} == set(QUERIES)


def test_values_are_written_like_in_flink() -> None:
    at = datetime(2024, 1, 1, 10, 0, 0, 120_000, tzinfo=UTC)
    given = [Decimal("908.000"), at, at.replace(microsecond=0), "a", 7]
    assert [_plain(value) for value in given] == ["908", "2024-01-01 10:00:00.12", "2024-01-01 10:00:00", "a", "7"]


def test_csv_has_times_in_the_form_of_sql_and_no_empty_text() -> None:
    at = pa.array([1_700_000_000_123_456], pa.timestamp("us", "UTC"))
    rows = _as_text(pa.table({"dateTime": at, "expires": at, "extra": [""], "id": [1]}))
    expected = ("2023-11-14 22:13:20.123", "2023-11-14 22:13:20.123456", "none", 1)
    assert tuple(rows.to_pylist()[0].values()) == expected


def test_flink_gets_every_other_row_in_each_of_two_files() -> None:
    files = _two_files([pa.table({"n": [0, 1, 2]}), pa.table({"n": [3, 4]})])
    assert [rows["n"].to_pylist() for rows in files] == [[0, 2, 4], [1, 3]]


def test_running_averages_become_the_last_of_each_category() -> None:
    assert [*_last_averages([(1, 10, 5.0), (2, 11, 7.9), (3, 10, 6.5)])] == [(10, 6), (11, 7)]


def test_an_array_of_bids_becomes_one_row_per_element() -> None:
    bids = [{"price": 9, "bidder": 1, "dateTime": "x"}, {"price": 8, "bidder": 2, "dateTime": "y"}]
    assert [*_one_by_one([(5, bids)])] == [(5, 9, 1, "x", 1), (5, 8, 2, "y", 2)]
