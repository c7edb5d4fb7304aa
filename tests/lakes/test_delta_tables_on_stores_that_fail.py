"""Delta commits to a store that throttles, is slow or loses answers: each tick is committed once, in one version."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from reliability.stores.proxy import LATE, LOSE, SLOW, THROTTLE, Faults, faulty
from rowtime.core import stores as core
from rowtime.core.errors import Failure
from rowtime.core.stores import place_of
from rowtime.runtime.retries import permanent
from tests.lakes.test_delta_tables_on_stores import SQL, Run, numbers
from tests.stores import conftest as stores
from tests.stores.server import BUCKET, address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

bucket = stores.bucket


@pytest.fixture
def faults(bucket: str) -> Iterator[Faults]:
    """The failures of the driver's requests to the bucket."""
    assert bucket
    with faulty(address()) as (proxy, found):
        rt.configure_stores({f"s3://{BUCKET}": {"endpoint": proxy}})
        yield found
    rt.configure_stores({})


def is_whole(url: str, rows: int) -> None:
    """Each row is there once, and each tick of a pump is in one version."""
    assert numbers(f"{url}/out") == [*range(rows)]
    assert numbers(f"{url}/last") == sorted({n % 3: n for n in range(rows)}.values())
    for name in ("out", "last"):
        entries = (place_of(url) / name / "_delta_log").glob("*.json")  # deltalake's history() holds Python's lock
        lines = [json.loads(line) for entry in entries for line in entry.read_text().splitlines()]
        told = [line["commitInfo"] for line in lines if "rowtime.tick" in line.get("commitInfo", {})]
        said = Counter((one["rowtime.pump"], one["rowtime.tick"]) for one in told)
        assert {*said.values()} == {1}, said


@pytest.mark.slow
def test_a_commit_with_a_lost_a_late_or_no_answer_is_made_once(
    spark: SparkSession, tmp_path: Path, bucket: str, faults: Faults
) -> None:
    run = Run(spark, tmp_path, bucket, SQL)
    kinds = ([LOSE, LOSE], [LOSE], [THROTTLE, THROTTLE, LOSE], [SLOW], [LATE])
    for at, befalls in enumerate(kinds):
        for table_name in ("out", "last"):
            rows = 20 * at + 10 * (1 + (table_name == "last"))
            faults.put(f"{table_name}/_delta_log", *befalls)
            run.send(range(rows - 10, rows))
            run.go()
            assert not faults.next, befalls
            is_whole(bucket, rows)
        assert {*faults.deliver()} <= {412}, "what comes late finds that it has been done"


@pytest.mark.slow
@pytest.mark.parametrize("arrives", ["before the next try", "after it"])
def test_a_store_that_does_not_answer_leaves_the_tick_to_the_next_try(
    spark: SparkSession, tmp_path: Path, bucket: str, faults: Faults, monkeypatch: pytest.MonkeyPatch, arrives: str
) -> None:
    monkeypatch.setattr(core, "RETRIED", timedelta(seconds=1))
    core._client.cache_clear()
    run = Run(spark, tmp_path, bucket, SQL)
    for at, name in enumerate(("out", "last")):
        run.send(range(20 * at, 20 * at + 10))
        run.go()
        run.send(range(20 * at + 10, 20 * at + 20))
        faults.put(f"{name}/_delta_log", *[LATE] * 100)
        with pytest.raises(
            Failure, match=rf"R583 (even|newest): the bucket s3://{BUCKET}, .* does not answer"
        ) as failed:
            run.go()
        assert not permanent(failed.value), "a run that goes on tries again"
        assert "\x1b" not in str(failed.value)
        faults.put("")
        if arrives == "after it":
            run.go()
            assert {*faults.deliver()} == {412}
        else:
            assert sorted({*faults.deliver()}) == [200, 412], "one of them has counted"
        run.go()
        is_whole(bucket, 20 * at + 20)
    core._client.cache_clear()
