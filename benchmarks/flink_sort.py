"""ORDER BY rowtime in PyFlink: ``python flink_sort.py FEW SOURCE WARM ROUNDS [FOLDER]``, run by Flink's own Python.

Sorts the CSV files of SOURCE into its blackhole, those of FEW first, as often as WARM says; prints the
seconds of each round as JSON. With FOLDER the rows of one more run are written there.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

COLUMNS = "ev TIMESTAMP(3), k BIGINT, v BIGINT"
SOURCE = """CREATE TEMPORARY TABLE {name} ({columns}, WATERMARK FOR ev AS ev - INTERVAL '10' SECOND)
WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"""


def main(few: str, source: str, warm: str, rounds: str, folder: str = "") -> None:
    from pyflink.table import EnvironmentSettings, TableEnvironment  # noqa: PLC0415 - not in rowtime's environment

    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {"parallelism.default": "2", "table.local-time-zone": "UTC"}.items():
        tables.get_config().set(key, value)
    for name, path in (("few", few), ("many", source)):
        tables.execute_sql(SOURCE.format(name=name, columns=COLUMNS, path=path))
    tables.execute_sql(f"CREATE TEMPORARY TABLE nothing ({COLUMNS}) WITH ('connector' = 'blackhole')")
    for _ in range(int(warm)):
        _run(tables, "nothing", "few")
    seconds = [_run(tables, "nothing", "many") for _ in range(int(rounds))]
    if folder:
        options = f"'connector' = 'filesystem', 'path' = '{folder}', 'format' = 'csv'"
        tables.execute_sql(f"CREATE TEMPORARY TABLE kept ({COLUMNS}) WITH ({options})")
        _run(tables, "kept", "many")
    print(json.dumps({"seconds": seconds}))


def _run(tables: Any, sink: str, source: str) -> float:
    began = time.perf_counter()
    tables.execute_sql(f"INSERT INTO {sink} SELECT ev, k, v FROM {source} ORDER BY ev").wait()
    return time.perf_counter() - began


if __name__ == "__main__":
    main(*sys.argv[1:])
