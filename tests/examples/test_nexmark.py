"""Nexmark: the generator, the bound of each query's state, and its answers compared with Spark's batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from examples.nexmark.events import BEGINNING, GAP, LONGEST, Chunk, write
from examples.nexmark.queries import FOLDER, QUERIES, STREAMS, batched, difference, pipeline, streamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(16)

QUICK = ("q5", "q6", "q9", "q13")


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """22.5 seconds of events, in three files a stream."""
    folder = tmp_path_factory.mktemp("nexmark")
    write(folder, 22_500, 3)
    return folder


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_others_bids(events: Path) -> None:
    counts = {name: pq.read_table(events / name).num_rows for name in STREAMS}
    assert counts == {"person": 450, "auction": 1_350, "bid": 20_700}


def test_the_same_events_come_whenever_they_are_made() -> None:
    assert Chunk(5_000, 500).tables == Chunk(5_000, 500).tables
    assert Chunk(5_000, 500).tables["bid"] != Chunk(5_500, 500).tables["bid"]


def test_references_point_to_earlier_events(events: Path) -> None:
    people, auctions, bids = (times(events, name) for name in STREAMS)
    opened = dict(zip(auctions["id"], auctions["at"], strict=True))
    registered = dict(zip(people["id"], people["at"], strict=True))
    assert all(registered[who] <= at for who, at in zip(auctions["seller"], auctions["at"], strict=True))
    assert all(registered[who] <= at for who, at in zip(bids["bidder"], bids["at"], strict=True))
    lags = [at - opened[what] for what, at in zip(bids["auction"], bids["at"], strict=True)]
    assert min(lags) > 0
    assert max(lags) < LONGEST <= 10_000_000  # the bound of q20
    everything = sorted([*people["at"], *auctions["at"], *bids["at"]])
    assert everything == [BEGINNING + n * GAP for n in range(len(everything))]


def times(events: Path, name: str) -> dict[str, list[int]]:
    """The columns of numbers, and the times as µs."""
    rows = pq.read_table(events / name)
    numbers = {c: rows[c].to_pylist() for c in rows.column_names if pa.types.is_integer(rows.schema.field(c).type)}
    return {**numbers, "at": rows["dateTime"].cast(pa.int64()).to_pylist()}


def test_only_two_queries_have_unbounded_state(tmp_path: Path) -> None:
    grows = []
    for query in QUERIES:
        program = pipeline(query, tmp_path, tmp_path / "home").compile()  # raises if the query is refused
        grows += [query for problem in program.warnings if problem.code == "R185"]
    assert grows == ["q18", "q19"]


@pytest.mark.parametrize("query", QUERIES)
def test_a_file_says_how_its_query_is_bounded(query: str) -> None:
    text = (FOLDER / f"{query}.sql").read_text(encoding="utf-8")
    assert any(words in text for words in ("Accepted as it is", "Given a", "WITH UNBOUNDED STATE:"))


def test_an_auction_that_lasts_too_long_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, 100, 1)
    path = tmp_path / "auction" / "000000.parquet"
    rows = pq.read_table(path)
    longer = pa.array([at + 10_000_001 for at in rows["dateTime"].cast(pa.int64()).to_pylist()], pa.int64())
    expires = rows.column_names.index("expires")
    pq.write_table(rows.set_column(expires, "expires", longer.cast(rows.schema.field("expires").type)), path)
    query = pipeline("q20", tmp_path, tmp_path / "home", spark).sink("result", lambda _batch: None)
    ledger = query.run_available(tmp_path / "checkpoint", end=True).ledger
    assert ledger["auction"]["MALFORMED"] == 6 == ledger["auction"]["in"]


@pytest.mark.slow
@pytest.mark.parametrize("query", QUICK)
def test_the_answers_are_those_of_the_batch(query: str, events: Path, spark: SparkSession, tmp_path: Path) -> None:
    ours = streamed(query, events, tmp_path, spark)
    assert ours.num_rows
    assert not difference(ours, batched(query, events, spark))


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_the_answers_are_those_of_the_batch_however_many_files_a_tick_takes(
    query: str, spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path, 100_000, 4)
    expected = batched(query, tmp_path, spark)
    for files in (1, 3):
        ours = streamed(query, tmp_path, tmp_path / str(files), spark, files=files)
        assert ours.num_rows
        assert not difference(ours, expected)


def test_a_difference_is_found() -> None:
    one = pa.table({"a": [1, 2, 2], "b": [0.5, None, None]})
    assert not difference(one, one.take([2, 0, 1]))
    assert difference(one, one.slice(1)) == "3 rows against 2"
    assert difference(one, one.take([0, 0, 1]))
