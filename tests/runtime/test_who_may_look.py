"""Only the owner can read rowtime's files: folders of rows are private, and Spark's servers listen locally only."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from reliability.soak.processors import below
from rowtime.state.files import make_private

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM s (v INT);
CREATE STREAM copy (v INT);
CREATE PUMP p AS INSERT INTO copy SELECT STREAM v FROM s;
"""
LISTENS = "0A"
LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")
SERVED = """
import sys
from rowtime.runtime.session import new_spark
spark = new_spark(master="local[1]", conf={"spark.ui.enabled": "true"})
spark.range(1).rdd.map(str).collect()
print(spark.sparkContext.uiWebUrl, flush=True)
sys.stdin.read()
spark.stop()
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_to_all() -> Iterator[None]:
    """Without the mask that usually hides missing modes."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_rows_and_definitions_are_private_to_their_owner(
    spark: SparkSession, tmp_path: Path, open_to_all: None
) -> None:
    home, check, elsewhere = tmp_path / "home", tmp_path / "runs" / "check", tmp_path / "elsewhere"
    made = rt.Pipeline(spark, home=home).sql(SQL)
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json())
    for log in (None, elsewhere):
        with rt.writer("s", home=home, log=log) as writer:
            writer.insert([{"v": 1}])
    made.run_available(check)
    private = {home, home / "streams", home / "logs", elsewhere, check}
    assert {path: oct(mode(path)) for path in private} == dict.fromkeys(private, oct(0o700))
    logs = [path for log in (home / "logs", elsewhere) for path in log.rglob("*") if path.is_dir()]
    assert len(logs) > 5
    assert {mode(path) for path in logs} == {0o700}
    assert mode(tmp_path / "runs") == 0o777, "what is above is as other programs make it"


def test_a_folder_that_its_owner_has_opened_stays_open(tmp_path: Path) -> None:
    (tmp_path / "check").mkdir(mode=0o750)
    make_private(tmp_path / "check")
    assert mode(tmp_path / "check") == 0o750


def listening(processes: set[str]) -> set[str]:
    """The addresses at which these processes listen, as Linux writes them."""
    handles = [handle for process in processes for handle in Path(f"/proc/{process}/fd").glob("*")]
    sockets = {str(handle.readlink()) for handle in handles if handle.is_symlink()}
    lines = [line for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
    fields = [line.split() for line in lines]
    return {one[1].split(":")[0] for one in fields if one[3] == LISTENS and f"socket:[{one[9]}]" in sockets}


@pytest.mark.slow  # a Spark of its own; test_shared_places.py checks the settings
def test_sparks_servers_listen_only_on_this_machine() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    command = [sys.executable, "-c", SERVED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as driver:
        assert driver.stdout is not None
        address = driver.stdout.readline().strip()
        found = listening({str(driver.pid), *below(str(driver.pid))})
        driver.communicate()
    assert address.startswith("http://127.0.0.1:")
    assert found
    assert found <= set(LOOPBACK)
