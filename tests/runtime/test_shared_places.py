"""Places that a cluster cannot share are refused, and workers reach the session of a cluster."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.client.home import Home
from rowtime.core.errors import Refused
from rowtime.core.shared_paths import local
from rowtime.core.stores import ObjectPlace, on_store
from rowtime.runtime.session import derive, settings_for
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.journal import Journal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STORES = ["s3://bucket/x", "s3a://bucket/x", "gs:/x", "abfss://c@a.dfs.core.windows.net/x", "hdfs:///x", "dbfs:/x"]


def code(refused: pytest.ExceptionInfo[Refused]) -> str:
    return refused.value.problems[0].code


@pytest.mark.usefixtures("spark")  # otherwise the pipelines would start a session with other settings
@pytest.mark.parametrize("place", STORES)
def test_a_place_on_a_store_is_refused_except_for_a_checkpoint_and_a_home(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script = "CREATE STREAM s (v INT); CREATE STREAM o (v INT) USING json OPTIONS (path '{}'); "
    script += "INSERT INTO o SELECT STREAM v FROM s;"
    for path, checkpoint in (("out", place), ("out", Path(place)), (place, "check")):
        if path == "out" and on_store(place):
            continue
        with pytest.raises(Refused) as refused:
            rt.Pipeline(home="home").sql(script.format(path))._engine(checkpoint, rt.Limits(), ends=True)
        assert code(refused) == ("R586" if on_store(place) else "R211")
    if on_store(place):
        assert isinstance(Home(place).path, ObjectPlace)
    else:
        with pytest.raises(Refused) as refused:
            Home(place)
        assert code(refused) == "R211"
    assert not [path for path in tmp_path.rglob("*") if ":" in path.name]


def test_local_places_are_unchanged(tmp_path: Path) -> None:
    assert local(f"file://{tmp_path}/a%20b", "it") == tmp_path / "a b"
    assert local(f"{tmp_path}/a:b", "it") == tmp_path / "a:b"
    assert local("a%20b/c", "it") == Path.cwd() / "a%20b" / "c"


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_without_links_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def unable(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", unable)
    with pytest.raises(Refused) as refused:
        Journal(tmp_path / "journal").commit(0, {})
    assert code(refused) == "R410"
    assert list((tmp_path / "journal").iterdir()) == []
    monkeypatch.setattr(fcntl, "flock", unable)
    with pytest.raises(Refused) as refused:
        Checkpoint(tmp_path).acquire()
    assert code(refused) == "R410"


def test_a_full_disk_is_not_blamed_on_the_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(OSError, match="No space") as failed:
        Journal(tmp_path / "journal").commit(0, {})
    assert failed.value.errno == errno.ENOSPC


def test_only_a_local_session_is_bound_to_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    shared = settings_for("spark://master:7077", [], {"spark.x": "1"})
    assert not {"spark.driver.host", "spark.driver.bindAddress", "spark.driver.memory"} & shared.keys()
    assert shared["spark.x"] == "1"
    assert "SPARK_LOCAL_IP" not in os.environ
    alone = settings_for("local[2]", [], {})
    assert alone["spark.driver.host"] == alone["spark.driver.bindAddress"] == "127.0.0.1"
    monkeypatch.delenv("SPARK_LOCAL_IP")


def test_only_a_local_session_of_rowtime_has_no_ui_unless_it_is_asked_for() -> None:
    asked = {"spark.ui.enabled": "true"}
    found = [settings_for(master, [], conf) for master in ("local[2]", "spark://m:7077") for conf in ({}, asked)]
    assert [settings.get("spark.ui.enabled") for settings in found] == ["false", "true", None, "true"]


def test_a_session_of_spark_connect_is_refused() -> None:
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(Refused) as refused:
        derive(remote)
    assert code(refused) == "R212"


def test_the_applications_number_of_partitions_is_kept(spark: SparkSession) -> None:
    told = spark.sparkContext.getConf().get("spark.sql.shuffle.partitions")
    assert derive(spark).conf.get("spark.sql.shuffle.partitions") == told
