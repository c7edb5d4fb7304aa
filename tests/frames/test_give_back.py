"""Before a large step the allocators give back what they keep, and queries of other threads go on."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rowtime.frames import queries
from rowtime.frames.queries import MANY_ROWS, Query, all_of, give_back, resident

COUNT = 1_000_000
MEGABYTE = 1 << 20


def groups(number: int = 0) -> Query:
    rows = all_of(pa.table({"c0": pa.array(range(COUNT)), "c1": pa.array(range(number, number + COUNT))}))
    return rows.over(f"SELECT c0, sum(c1) AS c1, count(*) AS c2 FROM {rows} GROUP BY c0")


def settings() -> object:
    return queries._connection(few=False).execute("SELECT current_setting('threads')").fetchall()


def test_what_a_large_query_has_used_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    assert groups().rows().num_rows == COUNT
    monkeypatch.setattr(queries, "KEPT", 0)
    monkeypatch.setattr(queries, "GROWN", -(1 << 60))
    before, threads = resident(), settings()
    give_back(MANY_ROWS)
    assert resident() < before - 20 * MEGABYTE
    assert settings() == threads


def test_few_rows_or_little_memory_are_not_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(**_: bool) -> None:
        pytest.fail("gives back")

    groups().rows()
    monkeypatch.setattr(queries, "_connection", never)
    give_back(MANY_ROWS - 1)
    monkeypatch.setattr(queries, "KEPT", 1 << 60)
    give_back(MANY_ROWS)


def test_queries_of_other_threads_have_their_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "KEPT", 0)
    monkeypatch.setattr(queries, "GROWN", -(1 << 60))

    def total(number: int) -> int:
        return int(pc.sum(groups(number).rows()["c1"]).as_py())

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(total, range(12)))
    queries.close({threading.main_thread().ident})
    assert found == [sum(range(number, number + COUNT)) for number in range(12)]
