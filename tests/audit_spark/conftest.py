"""A session for audits, and folders of files that came in the order of their names."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rowtime.audit_spark.cuts import session_of
from rowtime.audit_spark.inputs import Inputs, inputs_of
from tests.cli.conftest import rowtime

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["rowtime"]
SCHEMA = "at TIMESTAMP, key STRING"
Row = tuple[datetime, str]


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    return session_of(spark, {"spark.sql.shuffle.partitions": "1"})


def write(folder: Path, files: Sequence[Sequence[Row]], first: int = 0, step: int = 1) -> Path:
    """Write rows into files, whose times of change ascend from ``first`` in steps of seconds."""
    folder.mkdir(parents=True)
    for number, rows in enumerate(files):
        file = folder / f"{number}.csv"
        file.write_text("\n".join(["at,key", *(f"{at:%Y-%m-%d %H:%M:%S},{key}" for at, key in rows), ""]))
        os.utime(file, (1_700_000_000 + first + step * number,) * 2)
    return folder


@pytest.fixture
def inputs(session: SparkSession, tmp_path: Path) -> Callable[..., Inputs]:
    def of(**given: Sequence[Sequence[Row]]) -> Inputs:
        numbered = enumerate(given.items())
        places = {name: str(write(tmp_path / name, files, n, len(given))) for n, (name, files) in numbered}
        return inputs_of(session, places, dict.fromkeys(given, SCHEMA), {}, {}, None, tmp_path / "scratch")

    return of
