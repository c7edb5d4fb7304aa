"""The law of a profile: a run with the statement that it writes refuses exactly the rows that it predicted."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.core.time import DAY, HOUR, MINUTE, SECOND
from rowtime.profiling import reading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = 1_700_000_000 * SECOND


def times_of(rng: random.Random, many: int) -> list[int | None]:
    """Return times in a random disorder: seconds late, minutes late, none, and a few from the future."""
    now, future = START + rng.randrange(100) * SECOND, rng.random() < 0.5
    times: list[int | None] = []
    for _ in range(many):
        now += rng.choice([0, SECOND, 2 * SECOND, 30 * SECOND])
        late = rng.choice([0, 0, 0, rng.randrange(40) * SECOND, rng.randrange(10) * MINUTE])
        time = now - late * (rng.random() < 0.5)
        if future and rng.random() < 0.004:
            time += rng.randrange(20, 300) * DAY
        times.append(None if rng.random() < 0.01 else time)
    return times


def ledger(query: rt.Query, gate: str) -> Mapping[str, int]:
    return {name: n for name, n in query.engine.entry["totals"][gate].items() if n}


def assert_predicted(profile: rt.Profile, query: rt.Query, gate: str) -> None:
    counts = ledger(query, gate)
    assert counts["in"] == profile.rows
    assert counts.get("LATE", 0) == profile.late_rows(profile.within) == profile.advice.within.late
    assert counts.get("EARLY", 0) == profile.facts.early
    assert counts.get("NULL_ROWTIME", 0) == profile.facts.nulls


def written(folder: Path, files: list[list[int | None]], **columns: list[str]) -> None:
    """Write files whose names, and times of change, are in their order."""
    folder.mkdir()
    at = 0
    for n, times in enumerate(files):
        more = {name: values[at : at + len(times)] for name, values in columns.items()}
        at += len(times)
        table = pa.table({"at": pa.array(times, pa.timestamp("us", "UTC")), "n": range(len(times)), **more})
        pq.write_table(table, folder / f"{n:03}.parquet", row_group_size=97)


@pytest.mark.parametrize("seed", range(6))
def test_the_late_rows_of_a_run_over_files_are_those_of_the_profile(
    spark: SparkSession, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(reading, "FREE", 10 if seed % 2 else 100_000)
    files = [times_of(rng, rng.randrange(20, 400)) for _ in range(rng.randrange(1, 6))]
    written(tmp_path / "in", files)
    profile = rt.profile(tmp_path / "in", spark=spark, home=tmp_path / "home", keep=rng.choice([0.7, 0.95, 0.999]))
    for limits in (rt.Limits(files=1), rt.Limits()):
        home = tmp_path / f"home{limits.files}"
        script = f"{profile.statement}\nSELECT STREAM n FROM in_files_in_order;"
        query = rt.Pipeline(spark, home=home).sql(script).run_available(tmp_path / f"c{limits.files}", limits=limits)
        assert_predicted(profile, query, "in_files_in_order")


@pytest.mark.parametrize("seed", range(3))
def test_so_are_those_of_a_log_with_several_writers(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rng, home = random.Random(seed), tmp_path / "home"
    sql = "CREATE STREAM taps (at TIMESTAMP, who STRING)"
    pipeline = rt.Pipeline(spark, home=home).sql(sql)
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json())
    for name in ("a", "b", "c")[: 1 + seed]:
        with rt.writer("taps", home=str(home), writer=name) as writer:
            for _ in range(3):
                times = [at for at in times_of(rng, 80) if at is not None]
                writer.insert([{"at": datetime.fromtimestamp(at / SECOND, UTC), "who": name} for at in times])
    profile = rt.profile("taps", spark=spark, home=home, keep=0.9)
    assert profile.writers["writer"].to_pylist() == ["a", "b", "c"][: 1 + seed]
    script = f"{profile.statement}\nSELECT STREAM who FROM taps_in_order;"
    query = rt.Pipeline(spark, home=home).sql(script).run_available(tmp_path / "c")
    assert_predicted(profile, query, "taps_in_order")


def test_gates_of_a_script_are_profiled_where_they_are(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(5)
    files = [times_of(random.Random(12), 300), times_of(rng, 200)]
    written(tmp_path / "in", files)
    script = f"""
    CREATE STREAM taps (at TIMESTAMP, n BIGINT CHECK (n <> 7)) USING parquet OPTIONS (path '{tmp_path}/in');
    CREATE VIEW even AS SELECT STREAM at + INTERVAL '1' HOUR AS ROWTIME, n FROM (
      SELECT STREAM * FROM taps WHERE n % 2 = 0) AS t ORDER BY at + INTERVAL '1' HOUR WITHIN INTERVAL '{{a}}' SECOND;
    CREATE VIEW guarded AS SELECT STREAM at AS ROWTIME, n FROM taps
      ORDER BY at WITHIN INTERVAL '{{a}}' SECOND EARLY BEYOND INTERVAL '1' HOUR;
    CREATE VIEW minutes AS SELECT STREAM COUNT(*) AS c FROM taps
      GROUP BY FLOOR(at TO MINUTE) WITHIN INTERVAL '{{a}}' SECOND;
    SELECT STREAM n FROM even; SELECT STREAM n FROM guarded; SELECT STREAM c FROM minutes;
    """
    (tmp_path / "taps.sql").write_text(script.format(a=1))
    options = {"spark": spark, "home": tmp_path / "home"}
    with pytest.raises(rt.Refused, match="R624"):
        rt.profile(tmp_path / "taps.sql", **options)
    for gate in ("even", "guarded", "minutes"):
        profile = rt.profile(tmp_path / "taps.sql", gate=gate, keep=0.8, **options)
        within = profile.within // timedelta(seconds=1)
        assert f"WITHIN INTERVAL '{within}' SECOND" in profile.statement or within % 60 == 0
        ready = script.format(a=within)
        query = rt.Pipeline(spark, home=tmp_path / gate).sql(ready).run_available(tmp_path / f"c-{gate}")
        counts = ledger(query, gate)
        assert counts.get("LATE", 0) == profile.late_rows(profile.within), gate
        assert counts.get("EARLY", 0) == profile.facts.early
        assert counts["in"] == profile.rows - profile.facts.bad


def test_a_frame_is_read_in_its_order(spark: SparkSession) -> None:
    rng = random.Random(3)
    rows = [
        (at and datetime.fromtimestamp(at / SECOND, UTC), rng.choice("xy"), n)
        for n, at in enumerate(times_of(rng, 500))
    ]
    frame = (
        spark.createDataFrame(rows * 2, "at timestamp, device string, n int").repartition(1).sortWithinPartitions("n")
    )
    profile = rt.profile(frame, time="at", writer="device", key="n")
    marks: dict[str, datetime] = {}
    late = dict.fromkeys("xy", 0)
    for at, device, _ in sorted((row for row in rows * 2 if row[0]), key=lambda row: row[2]):
        late[device] += device in marks and at < marks[device]
        marks[device] = max(at, marks.get(device, at))
    assert dict(zip(*profile.writers.select(["writer", "late"]).to_pydict().values(), strict=True)) == late
    assert profile.facts.duplicates == sum(at is not None for at, _, _ in rows)
    assert profile.curve["late"][-1].as_py() == 0
    with pytest.raises(rt.Refused, match="R621"):
        rt.profile(frame, time="n")
    with pytest.raises(rt.Refused, match="R103"):
        rt.profile(frame, time="at", writer="nobody")


def test_clocks_of_their_own_are_advised_if_they_help(spark: SparkSession, tmp_path: Path) -> None:
    now, times, devices = START, [], []
    for n in range(600):
        now += SECOND
        times.append(now - (2 * HOUR if n % 3 == 0 else 0))
        devices.append("slow" if n % 3 == 0 else "fast")
    written(tmp_path / "in", [times[:300], times[300:]], device=devices)
    profile = rt.profile(tmp_path / "in", writer="device", spark=spark, home=tmp_path / "home")
    assert profile.facts.late.rows == 199
    assert profile.facts.own is not None
    assert profile.facts.own.clock.late.rows == 0
    assert any("one clock for each device" in finding for finding in profile.findings)
    assert any("2 hours" in finding for finding in profile.findings)
    assert sorted(profile.writers["writer"].to_pylist()) == ["fast", "slow"]
