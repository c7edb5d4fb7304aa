"""`mode`: what happens with records of text files that do not decode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from rowtime.core.errors import Failure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM s (k STRING, n INT) USING {kind} OPTIONS (path '{at}/in'{mode});
CREATE STREAM o (k STRING, n INT) USING json OPTIONS (path '{at}/o', rowtime.column '');
CREATE PUMP p AS INSERT INTO o SELECT STREAM k, n FROM s;
CREATE STREAM bad (reason STRING, text STRING) USING json OPTIONS (path '{at}/bad', rowtime.column '');
CREATE PUMP q AS INSERT INTO bad SELECT STREAM reason, raw_record FROM s.rejected;
"""
TEXTS = {"csv": ("a,1\n", "b,no\nc,3\n"), "json": ('{"k": "a", "n": 1}\n', '{"k": "b", \n{"k": "c", "n": 3}\n')}


def pipeline(spark: SparkSession, at: Path, kind: str, mode: str) -> rt.Pipeline:
    given = f", mode '{mode}'" if mode else ""
    return rt.Pipeline(spark, home=at / "home").sql(SQL.format(kind=kind, at=at, mode=given))


def run(spark: SparkSession, at: Path, kind: str, mode: str) -> None:
    pipeline(spark, at, kind, mode).run_available(at / "check")


def put(at: Path, name: str, text: str) -> Path:
    (at / "in").mkdir(exist_ok=True)
    (at / "in" / name).write_text(text)
    return at / "in" / name


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for file in sorted(folder.glob("part-*")) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize("mode", ["", "permissive", "DropMalformed"])
def test_a_bad_record_is_refused_and_counted(spark: SparkSession, tmp_path: Path, kind: str, mode: str) -> None:
    put(tmp_path, "1", "".join(TEXTS[kind]))
    run(spark, tmp_path, kind, mode)
    assert [line["k"] for line in lines(tmp_path / "o")] == ["a", "c"]
    (bad,) = lines(tmp_path / "bad")
    assert (bad["reason"], str(bad["text"]).strip()) == ("MALFORMED", TEXTS[kind][1].split("\n", maxsplit=1)[0].strip())


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_run_that_fails_fast_ends_before_its_tick_is_committed(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    good, text = TEXTS[kind]
    put(tmp_path, "1", good)
    run(spark, tmp_path, kind, "failfast")
    file = put(tmp_path, "2", text)
    for _ in range(2):  # the file is not set aside either
        with pytest.raises(Failure, match=r"R525 record 1 of .*/in/2 does not decode: .*b") as failed:
            run(spark, tmp_path, kind, "failfast")
        assert "mode 'PERMISSIVE'" in str(failed.value)
        assert [line["k"] for line in lines(tmp_path / "o")] == ["a"]
    file.write_text(text.replace("b,no\n", "").replace('{"k": "b", \n', ""))
    run(spark, tmp_path, kind, "failfast")
    assert [line["k"] for line in lines(tmp_path / "o")] == ["a", "c"]
    assert rt.verify(tmp_path / "check", pipeline(spark, tmp_path, kind, "failfast")).equal


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_the_mode_may_change_from_start_to_start(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    put(tmp_path, "1", "".join(TEXTS[kind]))
    with pytest.raises(Failure, match="R525"):
        run(spark, tmp_path, kind, "FAILFAST")
    run(spark, tmp_path, kind, "PERMISSIVE")
    put(tmp_path, "2", TEXTS[kind][1])
    with pytest.raises(Failure, match="R525"):
        run(spark, tmp_path, kind, "FAILFAST")
    run(spark, tmp_path, kind, "")
    assert [line["k"] for line in lines(tmp_path / "o")] == ["a", "c", "c"]
    assert len(lines(tmp_path / "bad")) == 2
    assert rt.verify(tmp_path / "check", pipeline(spark, tmp_path, kind, "")).equal
