"""Flink's side of `flink.Session`, run by Flink's own Python: reads a line of JSON, and answers with one.

A line says what to do with a text. ``["run", statement]`` and ``["drained", query]`` are answered with the seconds that
they took and those of the processor that Java used, ``["rows", query, key]`` with the rows that are there in the end;
``key``: the numbers of the columns of which one row is left for each value; without any no row is replaced.
What fails is answered with ``failed`` and what Java says.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

SETTINGS = {"parallelism.default": "2", "table.local-time-zone": "UTC"}


def main() -> None:
    from pyflink.table import EnvironmentSettings, TableEnvironment  # noqa: PLC0415 - not in rowtime's environment

    flink = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in SETTINGS.items():
        flink.get_config().set(key, value)
    for line in sys.stdin:
        what, *given = json.loads(line)
        try:
            print("answer", json.dumps(DONE[what](flink, *given)), flush=True)
        except Exception as error:  # noqa: BLE001 - Java's, of any kind
            print("failed", json.dumps(f"{error}"), flush=True)


def _run(flink: Any, statement: str) -> tuple[float, float]:
    began, used = time.perf_counter(), _processor()
    flink.execute_sql(statement).wait()
    return time.perf_counter() - began, _processor() - used


def _drained(flink: Any, query: str) -> tuple[float, float]:
    from pyflink.table import TableDescriptor  # noqa: PLC0415 - as above

    nothing = TableDescriptor.for_connector("blackhole").build()
    began, used = time.perf_counter(), _processor()
    flink.sql_query(query).execute_insert(nothing).wait()
    return time.perf_counter() - began, _processor() - used


def _rows(flink: Any, query: str, key: list[int]) -> list[list[Any]]:
    """Runs it into files of changes; those of PyFlink's own ``collect`` come one by one from Java, which takes long.

    Changes of one key come in order, from one task. Not all plans take a row back before they send its successor.
    """
    from pyflink.table import TableDescriptor  # noqa: PLC0415 - as above

    left: dict[Any, list[Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        changes = TableDescriptor.for_connector("filesystem").option("path", folder).format("debezium-json").build()
        flink.sql_query(query).execute_insert(changes).wait()
        lines = (line for path in sorted(Path(folder).iterdir()) for line in path.read_text("utf-8").splitlines())
        for number, line in enumerate(lines):
            change = json.loads(line, parse_float=_plain)
            row = [*(change["after"] or change["before"]).values()]
            place = tuple(row[column] for column in key) or number
            if change["after"]:
                left[place] = row
            elif left.get(place) == row:
                del left[place]
    return [*left.values()]


def _plain(number: str) -> str:
    return f"{Decimal(number).normalize():f}"


def _processor() -> float:
    """Seconds of processor time that Java has used, which this process has started."""
    java = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    ticks = (Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13] for process in java)
    return sum(int(user) + int(system) for user, system in ticks) / os.sysconf("SC_CLK_TCK")


DONE = {"run": _run, "drained": _drained, "rows": _rows}

if __name__ == "__main__":
    main()
