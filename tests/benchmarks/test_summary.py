"""The last line of `make bench` says which goals were missed and which results differ."""

from __future__ import annotations

from benchmarks.measurement import against, answers_of, summary


def test_the_last_line_counts_and_names_the_misses() -> None:
    results = [
        {"name": "group", "ratios": [against("default", 1.5, 1.2), against("rocksdb", 1.9, 2.0)]},
        {"name": "tick", "ratios": [against("default", 1.1, 1.0, most=True)], "answers": {"default": "equal"}},
        {"name": "flink", "ratios": [], "skipped": "there is no PyFlink"},
        {"name": "join", "answers": {"batch": "7 rows against 8"}},
    ]
    assert summary(results) == (
        "3 measurements, 1 of 3 requirements met; missed: group against rocksdb 1.9, required >= 2.0; "
        "missed: tick against default 1.1, required <= 1.0, 1 of 2 answers equal, 1 skipped"
    )
    assert [answer for result in results for answer in answers_of(result)] == ["equal", "7 rows against 8"]
