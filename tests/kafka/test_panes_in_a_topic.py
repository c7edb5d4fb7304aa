"""Repeated fires in a compacted topic, with pane and keys as its key: the last value of a key is the batch answer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.core.errors import Refused
from rowtime.runtime.sinks.kafka import write_bound
from rowtime.state.checkpoint import Checkpoint
from tests.landings import HOURLY, Answer, batch, landings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reliability.broker import Broker

SINK = """\
CREATE STREAM {name} ({columns}) USING kafka OPTIONS (
  kafka.bootstrap.servers '{servers}', topic '{name}', key.columns 'hour, airport', rowtime.column ''{more});
INSERT INTO {name} SELECT STREAM * FROM {view};
"""


def _latest(spark: SparkSession, broker: Broker, topic: str) -> Mapping[str, Any]:
    """The last value of each key, as a compacted topic keeps it; bounds have a key too."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    records = reader.option("subscribe", topic).load().selectExpr("partition", "offset", "key", "value").collect()
    found = {bytes(r["key"]).decode(): r["value"] for r in sorted(records, key=lambda r: (r["partition"], r["offset"]))}
    return {key: json.loads(value) for key, value in found.items() if value is not None}


def _answer(latest: Mapping[str, Any]) -> Answer:
    rows = latest.values()
    return Counter((r["airport"] or "?", r["hour"][:16].replace("T", " "), r["arrivals"], r["total"]) for r in rows)


@pytest.mark.slow
def test_the_last_of_each_key_is_the_batch_answer(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    columns = "airport STRING, hour TIMESTAMP, {}arrivals BIGINT, total BIGINT{}"
    sinks = (
        ("latest", columns.format("n BIGINT, ", ""), "hourly", ""),
        ("remains", columns.format("", ", change STRING"), "changed", ", mode 'changes'"),
    )
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(HOURLY)
    for name, listed, view, more in sinks:
        broker.create_topic(name, 2, cleanup_policy="compact")
        made.sql(SINK.format(name=name, columns=listed, view=view, more=more, servers=broker.bootstrap))
    made.run_available(tmp_path / "check")
    rows = landings(2)
    staged = tmp_path / "check" / "handover"
    for part in (rows[:180], rows[180:]):
        with rt.writer("landings", home=tmp_path / "home", writer="tower") as writer:
            writer.insert(part)
            if part[-1] is rows[-1]:
                writer.end()
        query = made.run_available(tmp_path / "check")
        assert len([*staged.iterdir()]) == len(sinks)
        assert {path.name for path in staged.glob("*/*")} == {"owner.json"}  # and no rows
    Checkpoint(tmp_path / "check").published -= 1  # a driver that died before it could record that
    query = made.run_available(tmp_path / "check")
    refused = {n for path in query.rejected("hourly") for n in pq.read_table(path)["n"].to_pylist()}
    assert refused
    assert _answer(_latest(spark, broker, "latest")) == batch(rows, refused)
    assert _answer(_latest(spark, broker, "remains")) == batch(rows, refused)


def test_options_of_keys_that_do_not_fit_are_refused(spark: SparkSession) -> None:
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}
    for more in ({"mode": "changes"}, {"mode": "merge"}, {"key.columns": "a", "key.column": "a"}):
        with pytest.raises(Refused, match="R504"):
            write_bound(spark, {**options, **more}, "s", 1)
