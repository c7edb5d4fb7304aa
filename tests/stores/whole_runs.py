"""Runs with checkpoint, home and lake tables in a store, in which Spark reads with its own file system."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deltalake import DeltaTable

from examples.s3_server import KEYS, REGION
from reliability.stores.proxy import faulty
from rowtime.core.errors import Failure
from tests.kafka.missing_jars import without_jars
from tests.stores.server import server
from tests.stores.spark_run import DEAD
from tests.upgrades.migrating import BEFORE_ENTRY

if TYPE_CHECKING:
    from reliability.stores.servers import Server

PROGRAM: Final = ("-m", "tests.stores.spark_run")
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


def rowtime(store: Server, *arguments: str, status: int = 0, dies: str = "") -> str:
    """The output of a command; it reaches the store by ``store.address``. ``dies``: the point of the crash."""
    done = subprocess.run(
        [sys.executable, *PROGRAM, *arguments],
        env={**os.environ, **_environment(store), "DIES": dies},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, (arguments, done.stdout, done.stderr[-3000:])
    return done.stderr if status else done.stdout


def _environment(store: Server) -> dict[str, str]:
    if not store.is_s3:
        return store.environment()
    key, secret = KEYS
    keys = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": REGION}
    return {"AWS_ENDPOINT_URL": store.address, **keys}


def rows(store: Server, url: str) -> list[tuple[str, int]]:
    found = DeltaTable(url, storage_options=store.delta()).to_pyarrow_table().to_pylist()
    return sorted((row["k"], row["n"]) for row in found)


def runs_on_server(name: str, jars: Callable[[], list[str]], agent: str, tmp_path: Path) -> None:
    """The same on a server, through a proxy that sees Spark (as ``agent``), which reads with these jars."""
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


MIGRATED: Final = """
CREATE STREAM s (k STRING, v BIGINT, ev TIMESTAMP);
CREATE STREAM counts (k STRING, n BIGINT) USING delta OPTIONS (path '{url}/counts', rowtime.column '');
CREATE STREAM keys (k STRING NOT NULL, n BIGINT) USING delta OPTIONS (path '{url}/keys', key 'k', rowtime.column '');
CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, k, v FROM s{where} ORDER BY ev WITHIN INTERVAL '5' SECOND;
CREATE PUMP p AS INSERT INTO counts SELECT STREAM k, COUNT(*) AS n FROM sorted AS x
  GROUP BY FLOOR(x.ROWTIME TO MINUTE), k;
CREATE PUMP r AS INSERT INTO keys SELECT STREAM COALESCE(k, '') AS k, COUNT(*) OVER w AS n FROM sorted
  WINDOW w AS (PARTITION BY k RANGE INTERVAL '1' DAY PRECEDING);
"""
ANEW: Final = """
CREATE STREAM anew (k STRING, n BIGINT) USING delta OPTIONS (path '{url}/anew', rowtime.column '');
CREATE PUMP fresh AS INSERT INTO anew SELECT STREAM k, COUNT(*) AS n FROM sorted AS x
  GROUP BY FLOOR(x.ROWTIME TO MINUTE), k;
"""


def migrates_on(store: Server, tmp_path: Path, point: str) -> None:
    """Other SQL continues a checkpoint in a store, with the command that the refusal names, and a driver that dies."""
    url = f"{store.bucket}/{tmp_path.name}"
    home, check = ["--home", f"{url}/home"], ["--checkpoint", f"{url}/check"]
    old, new = tmp_path / "old.sql", tmp_path / "new file.sql"
    old.write_text(MIGRATED.format(url=url, where=""))
    new.write_text(MIGRATED.format(url=url, where=" WHERE v < 50") + ANEW.format(url=url))

    def sends(minute: int) -> None:
        lines = [f'{{"k": "k{n % 2}", "v": {n * 10}, "ev": "2024-01-01 10:0{minute}:{n}0"}}' for n in range(6)]
        (tmp_path / "rows.jsonl").write_text("\n".join(lines))
        rowtime(store, "insert", "s", str(tmp_path / "rows.jsonl"), *home)

    rowtime(store, "run", str(old), *home, *check, "--available-now")
    sends(0)
    sends(1)
    rowtime(store, "run", str(old), *home, *check, "--available-now")
    assert rows(store, f"{url}/counts") == [("k0", 3), ("k1", 3)]
    refused = rowtime(store, "run", str(new), *home, *check, "--available-now", status=1)
    found = re.search(r"R401 .*(?s:.*)rowtime (migrate .* --take-over p --take-over r)", refused)
    assert found is not None, refused
    command = shlex.split(found[1])
    rowtime(store, *command, status=DEAD, dies=point)
    assert rows(store, f"{url}/counts") == [("k0", 3), ("k1", 3)]
    if point == BEFORE_ENTRY:
        rowtime(store, "run", str(old), *home, *check, "--available-now")
        assert "computed again" in rowtime(store, *command)
    sends(2)
    rowtime(store, "run", str(new), *home, *check, "--available-now")
    assert rows(store, f"{url}/counts") == [("k0", 3), ("k0", 3), ("k1", 2), ("k1", 3)]
    assert rows(store, f"{url}/anew") == [("k0", 3)] * 2 + [("k1", 2)] * 2
    assert rows(store, f"{url}/keys") == [("k0", 8), ("k1", 6)], "the last rows still wait in the sort"
    assert "equal" in rowtime(store, "verify", f"{url}/check", *home)
