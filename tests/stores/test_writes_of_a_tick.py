"""A tick waits for three writes of a store one after the other, whatever it keeps: rows, entry, commit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

import rowtime as rt
from reliability.stores.proxy import Faults, faulty
from rowtime.state.files import arrived
from tests.kafka.missing_jars import without_jars
from tests.stores.server import address, jars_missing, make_bucket

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.engine import Engine

SQL: Final = """
CREATE STREAM s (k STRING, v DOUBLE, ev TIMESTAMP);
CREATE STREAM other (k STRING, w DOUBLE, ev TIMESTAMP);
CREATE STREAM counts (k STRING, c BIGINT, w DOUBLE) USING delta OPTIONS (path '{url}/counts');
CREATE STREAM copies (k STRING, v DOUBLE) USING delta OPTIONS (path '{url}/copies');
CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, k, v FROM s ORDER BY ev WITHIN INTERVAL '20' SECOND;
CREATE VIEW others AS SELECT STREAM ev AS ROWTIME, k, w FROM other ORDER BY ev WITHIN INTERVAL '20' SECOND;
CREATE VIEW grouped AS SELECT STREAM k, COUNT(*) AS c FROM sorted AS x GROUP BY FLOOR(x.ROWTIME TO MINUTE), k;
CREATE PUMP p AS INSERT INTO counts SELECT STREAM g.k, g.c, o.w FROM grouped AS g
  JOIN others OVER (RANGE INTERVAL '1' MINUTE PRECEDING) AS o ON g.k = o.k;
CREATE PUMP q AS INSERT INTO copies SELECT STREAM k, v FROM sorted;
"""
PAUSE: Final = 1.0  # seconds by which each write is delayed, so that independent writes overlap on a busy machine too


def send(home: Path, tick: int) -> None:
    for stream, value in (("s", "v"), ("other", "w")):
        with rt.writer(stream, home=home) as log:
            times = [f"2024-01-01 10:{tick:02}:{second:02}" for second in (0, 40, 20)]
            late = {"k": "k0", value: 9.0, "ev": "2024-01-01 09:00:00"}
            log.insert([*({"k": f"k{n}", value: float(n), "ev": at} for n, at in enumerate(times)), late])


@contextmanager
def slow(name: str) -> Iterator[tuple[str, Faults]]:
    """A bucket whose writes can be slow, and the requests to it."""
    make_bucket(name)
    with faulty(address()) as (endpoint, faults):
        rt.configure_stores({f"s3://{name}": {"endpoint": endpoint}})
        try:
            yield f"s3://{name}", faults
        finally:
            rt.configure_stores({})


def one_after_the_other(faults: Faults) -> list[str]:
    """The longest sequence of PUTs, each of which began after the answer to the one before."""
    found: list[tuple[float, str]] = []
    for ended, began, path in sorted((ended, began, path) for began, ended, path in faults.puts):
        if not found or began >= found[-1][0]:
            found.append((ended, path))
    return [path for _, path in found]


def ticks(engine: Engine, home: Path, faults: Faults, count: int) -> list[str]:
    """Run some ticks, and one more; return the sequence of its writes."""
    for tick in range(count):
        send(home, tick)
        engine.tick()
    send(home, count)
    arrived(engine.checkpoint.folder)  # writes that the next tick would have waited for
    faults.puts.clear()
    faults.before = lambda *_: time.sleep(PAUSE) or ""
    report = engine.tick()
    faults.before = lambda *_: ""
    assert report is not None
    return one_after_the_other(faults)


@pytest.mark.slow
def test_a_tick_waits_for_three_writes_one_after_the_other(spark: SparkSession, tmp_path: Path, bucket: str) -> None:
    assert bucket
    if jars_missing():
        without_jars(jars_missing())
    with slow("writes-of-a-tick") as (url, faults):
        pipeline = rt.Pipeline(spark, home=tmp_path).sql(SQL.format(url=url))
        engine = pipeline._engine(f"{url}/checkpoint", rt.Limits(), ends=False)
        row = ticks(engine, tmp_path, faults, 4)
        assert len(faults.puts) >= 8, "state of four operators, refused rows, output, entry, commit"
        engine.close()
        engine.stop()
    assert len(row) <= 3, "\n".join(row)
    [entry] = [put for put in faults.puts if "/checkpoint/journal/" in put[2]]
    commits = [put for put in faults.puts if "/_delta_log/" in put[2]]
    kept = [put for put in faults.puts if "/state/" in put[2] or "/counts/rowtime-" in put[2]]
    assert len({put[2].split("/")[4] for put in kept if "/state/" in put[2]}) >= 4, "both sorts, the group and the join"
    assert max(ended for _, ended, _ in kept) < entry[0], "the entry names what is there"
    assert sorted(put[2].split("/")[2] for put in commits) == ["copies", "counts"]
    assert entry[1] < min(began for began, *_ in commits), "the tables get what the journal has"
