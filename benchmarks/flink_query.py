"""A query in PyFlink: ``python flink_query.py JSON``, run by Flink's own Python.

``tables``: of each the folders of its CSV files, ``few`` and ``many``, its ``columns`` and by how many seconds its
watermark is behind (``lag``). The ``query``, in which ``{name}`` stands for a table, goes into Flink's blackhole: over
the few rows as often as ``warm`` says, then over the many in ``rounds``; printed as JSON are the ``seconds`` of each
and those of the processor that Java used. With a ``folder`` the rows of one more run, of columns ``result``, are
written there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

SOURCE = """CREATE TEMPORARY TABLE {name} ({columns}, WATERMARK FOR ev AS ev - INTERVAL '{lag}' SECOND)
WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"""


def main(text: str) -> None:
    from pyflink.table import EnvironmentSettings, TableEnvironment  # noqa: PLC0415 - not in rowtime's environment

    asked = json.loads(text)
    flink = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {"parallelism.default": "2", "table.local-time-zone": "UTC"}.items():
        flink.get_config().set(key, value)
    for name, table in asked["tables"].items():
        for size in ("few", "many"):
            options = {"columns": table["columns"], "lag": table["lag"], "path": table[size]}
            flink.execute_sql(SOURCE.format(name=f"{name}_{size}", **options))
    flink.execute_sql(f"CREATE TEMPORARY TABLE nothing ({asked['result']}) WITH ('connector' = 'blackhole')")
    for _ in range(asked["warm"]):
        _run(flink, asked, "nothing", "few")
    rounds = [_run(flink, asked, "nothing", "many") for _ in range(asked["rounds"])]
    if asked.get("folder"):
        options = f"'connector' = 'filesystem', 'path' = '{asked['folder']}', 'format' = 'csv'"
        flink.execute_sql(f"CREATE TEMPORARY TABLE kept ({asked['result']}) WITH ({options})")
        _run(flink, asked, "kept", "many")
    print(json.dumps(dict(zip(("seconds", "processor"), zip(*rounds, strict=True), strict=True))))


def _run(flink: Any, asked: dict[str, Any], sink: str, size: str) -> tuple[float, float]:
    query = asked["query"].format(**{name: f"{name}_{size}" for name in asked["tables"]})
    began, used = time.perf_counter(), _processor()
    flink.execute_sql(f"INSERT INTO {sink} {query}").wait()
    return time.perf_counter() - began, _processor() - used


def _processor() -> float:
    """Seconds of processor time that Java has used, which this process has started."""
    java = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    ticks = (Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13] for process in java)
    return sum(int(user) + int(system) for user, system in ticks) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main(*sys.argv[1:])
