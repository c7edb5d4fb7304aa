"""Runs whose files could not be read: they are counted, and a run that read nothing does not succeed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    Rowtime = Callable[..., Result]

UNREAD = (
    "CREATE STREAM r (n INT, t TIMESTAMP) USING parquet OPTIONS (path 'in'{mode}); SELECT STREAM n FROM r;\n",
    "CREATE STREAM r (n STRING, t TIMESTAMP) USING parquet OPTIONS (path 'in'); SELECT STREAM n FROM r;\n",
)


def test_a_run_that_set_every_file_aside_does_not_succeed(rowtime: Rowtime, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("1", "2"):
        pq.write_table(pa.table({"n": ["text"], "t": [datetime(2026, 1, 1, tzinfo=UTC)]}), tmp_path / f"in/{name}")
    (tmp_path / "p.sql").write_text(UNREAD[0].format(mode=""))
    told = rowtime("run", "p.sql", "--available-now")
    assert told.exit_code == 3
    assert "its column n has type string, and the stream declares INT" in told.stderr
    assert "done: 0 rows in, 0 out, 0 refused, 2 files set aside, in " in told.stderr
    assert "R526 no row was read, because files were set aside (R520): 2 files of r" in told.stderr
    again = rowtime("run", "p.sql", "--available-now")
    assert again.exit_code == 3, "the files are still there, and still unread"
    assert "R526 no row was read, because files were set aside (R520): 2 files of r" in again.stderr
    in_json = rowtime("run", "p.sql", "--available-now", "--json", "--home", "other")
    assert in_json.exit_code == 3
    lines = [json.loads(line) for line in in_json.stdout.splitlines() if line.startswith('{"summary')]
    assert lines[0]["summary"]["files_set_aside"] == {"r": 2}
    for number, text in enumerate((UNREAD[0].format(mode=", mode 'PERMISSIVE'"), UNREAD[1])):  # what the hint says
        (tmp_path / "p.sql").write_text(text)
        followed = rowtime("run", "p.sql", "--available-now", "--home", f"followed{number}")
        assert followed.exit_code == 0, followed.stderr


def test_a_run_that_set_some_files_aside_counts_them(rowtime: Rowtime, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"n": pa.array([1], pa.int32())}), tmp_path / "in/1")
    (tmp_path / "in/2").write_bytes(b"")
    (tmp_path / "p.sql").write_text(UNREAD[0].format(mode=""))
    told = rowtime("run", "p.sql", "--available-now")
    assert told.exit_code == 0
    assert "done: 1 row in, 1 out, 0 refused, 1 file set aside, in " in told.stderr
