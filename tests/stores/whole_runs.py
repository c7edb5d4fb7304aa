"""Whole runs with checkpoint, home and lake tables in a store, in which Spark reads by its own file system."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deltalake import DeltaTable

from reliability.stores.proxy import faulty
from rowtime.core.errors import Failure
from tests.kafka.missing_jars import without_jars
from tests.stores.server import server

if TYPE_CHECKING:
    from reliability.stores.servers import Server

PROGRAM: Final = Path(__file__).with_name("spark_run.py")
SQL: Final = """
CREATE STREAM s (k STRING, v BIGINT, ev TIMESTAMP);
CREATE STREAM counts (k STRING, n BIGINT) USING delta OPTIONS (path '{url}/counts', rowtime.column '');
CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, k, v FROM s ORDER BY ev WITHIN INTERVAL '20' SECOND;
CREATE PUMP p AS INSERT INTO counts SELECT STREAM k, COUNT(*) AS n FROM sorted AS x
  GROUP BY FLOOR(x.ROWTIME TO MINUTE), k;
"""
READ: Final = """
CREATE STREAM made (k STRING, n BIGINT) USING delta OPTIONS (path '{url}/counts');
CREATE STREAM twice (k STRING, n BIGINT) USING delta OPTIONS (path '{url}/twice', rowtime.column '');
CREATE PUMP q AS INSERT INTO twice SELECT STREAM k, n * 2 AS n FROM made;
"""


def rowtime(store: Server, *arguments: str) -> str:
    """What a command prints; it reaches the store by way of ``store.address``."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments],
        env={**os.environ, **store.environment()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (arguments, done.stdout, done.stderr[-3000:])
    return done.stdout


def rows(store: Server, url: str) -> list[tuple[str, int]]:
    found = DeltaTable(url, storage_options=store.delta()).to_pyarrow_table().to_pylist()
    return sorted((row["k"], row["n"]) for row in found)


def runs_on_server(name: str, jars: Callable[[], list[str]], agent: str, tmp_path: Path) -> None:
    """The same on a server, by a proxy that sees Spark, which calls itself ``agent``, read with these jars."""
    try:
        jars()
    except Failure as failure:
        without_jars(failure.problems[0].message)
    with faulty(server(name).address) as (proxy, faults):
        runs_on(replace(server(name), address=proxy), tmp_path)
    assert any(agent in one for one in faults.agents), "Spark has read"


def runs_on(store: Server, tmp_path: Path) -> None:
    url = f"{store.bucket}/{tmp_path.name}"
    home, check = ["--home", f"{url}/home"], ["--checkpoint", f"{url}/check"]
    script = tmp_path / "counts.sql"
    script.write_text(SQL.format(url=url))
    rowtime(store, "run", str(script), *home, *check, "--available-now")
    for minute in range(2):
        lines = [f'{{"k": "k{n % 2}", "v": {n}, "ev": "2024-01-01 10:0{minute}:{n:02}"}}' for n in range(0, 60, 10)]
        (tmp_path / "rows.jsonl").write_text("\n".join(lines))
        rowtime(store, "insert", "s", str(tmp_path / "rows.jsonl"), *home)
        rowtime(store, "run", str(script), *home, *check, "--available-now")
        assert rows(store, f"{url}/counts") == sorted([("k0", 6)] * minute), "half of a minute is held in the state"
    assert "equal" in rowtime(store, "verify", f"{url}/check", *home)
    assert "tick" in rowtime(store, "status", f"{url}/check")
    rowtime(store, "bound", "s", "2024-01-01 11:00:00", *home)
    script.write_text(READ.format(url=url))
    rowtime(store, "run", str(script), *home, "--checkpoint", f"{url}/read", "--available-now")
    assert rows(store, f"{url}/twice") == [("k0", 12)]
