"""Checkpoints of older versions, `tests/checkpoints`: they continue, and end as if they had never stopped."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from tests.checkpoints import make

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLD = sorted(make.HERE.glob("format_*/*"))


def run(spark: SparkSession) -> dict[str, int]:
    """Run the script of this folder over the present input; return the ledger of its last gate."""
    made = rt.Pipeline(spark, home="home").sql(Path("script.sql").read_text(encoding="utf-8"))
    query = made.start("checkpoint", available_now=True)
    query.awaitTermination()
    return {name: sum(counts.values()) for name, counts in query.ledger.items()}


def found() -> list[tuple[Any, ...]]:
    files = [path for path in Path("out").glob("*.parquet") if not path.name.startswith(("_", "."))]
    return sorted((tuple(row.values()) for path in files for row in pq.read_table(path).to_pylist()), key=repr)


def test_there_are_checkpoints_of_this_format() -> None:
    assert {path.parent.name for path in OLD} >= {f"format_{make.FORMAT}"}
    assert {path.name for path in OLD} >= set(make.SCRIPTS)


def test_no_file_says_on_which_machine_it_was_made() -> None:
    files = (path for path in make.HERE.rglob("*") if path.is_file() and path.suffix != ".py")
    places = {place for path in files for place in re.findall(rb'"(?:folder|place)": ?"(/[^"]*)"', path.read_bytes())}
    assert places, "they name where they lay"
    assert {place for place in places if not place.startswith(make.PLACE + b"/")} == set()


@pytest.mark.slow
@pytest.mark.parametrize("old", OLD, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_checkpoint_continues_where_it_stopped(
    old: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(old, tmp_path / "old")
    monkeypatch.chdir(tmp_path / "old")
    before = found()
    make.feed(make.ITEMS // 2, make.ITEMS)
    ledger = run(spark)
    went_on = found()
    assert before, "it had sent something"
    assert len(before) < len(went_on)

    (tmp_path / "new").mkdir()
    monkeypatch.chdir(tmp_path / "new")
    Path("script.sql").write_text((old / "script.sql").read_text(encoding="utf-8"), encoding="utf-8")
    make.define()
    make.feed(0, make.ITEMS)
    assert run(spark) == ledger
    assert found() == went_on
