"""PyFlink beside rowtime: an environment of its own, made by ``make flink``, whose Python runs a script of ours."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / "build" / "flink-venv" / "bin" / "python"
MISSING = "not measured: there is no PyFlink; make flink"
SOURCE = """CREATE TEMPORARY TABLE {name} ({columns}{watermark})
WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"""

Times = tuple[float, float]
"""Seconds of the clock, and those of the processor that Java used."""


def is_there() -> bool:
    return PYTHON.exists()


class Session:
    """A process of Flink's Python with one JVM, which answers line by line (see `flink_session.py`)."""

    def __init__(self) -> None:
        ours = {"PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME"}
        environment = {name: value for name, value in os.environ.items() if name not in ours}
        command = [str(PYTHON), str(Path(__file__).parent / "flink_session.py")]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - open as long as the process
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, env=environment, stdin=pipe, stdout=pipe, stderr=self._errors, text=True
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # which ends its input
        self._errors.close()

    def run(self, statement: str) -> Times:
        """Execute a statement and wait for its end."""
        found: Times = self._asked("run", statement)
        return found

    def drained(self, query: str) -> Times:
        """Run a query into Flink's blackhole."""
        found: Times = self._asked("drained", query)
        return found

    def rows(self, query: str, key: Sequence[int] = ()) -> list[list[Any]]:
        """Return the final rows of a query; ``key``: the numbers of the columns by which a row replaces another."""
        found: list[list[Any]] = self._asked("rows", query, [*key])
        return found

    def table(self, name: str, columns: str, path: str, watermark: str = "") -> None:
        """Name a folder of CSV files; ``watermark``: an expression for its time, as ``ev - INTERVAL '1' SECOND``."""
        clause = f", WATERMARK FOR {watermark.split(maxsplit=1)[0]} AS {watermark}" if watermark else ""
        self.run(SOURCE.format(name=name, columns=columns, watermark=clause, path=path))

    def _asked(self, *what: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("answer "):  # others are of Flink's own
                return json.loads(line.removeprefix("answer "))
            if line.startswith("failed "):
                raise RuntimeError(f"PyFlink failed: {json.loads(line.removeprefix('failed '))}")
        self._errors.seek(0)
        raise RuntimeError(f"PyFlink failed: {self._errors.read()[-3000:]}")


def query(  # noqa: PLR0913 - what there is to say of a run, each by its keyword
    *, tables: Mapping[str, Mapping[str, Any]], query: str, result: str, warm: int, rounds: int, folder: str
) -> dict[str, list[float]]:
    """The ``seconds`` and ``processor`` seconds of each round of a query.

    ``tables``: of each the folders of its CSV files, ``few`` and ``many``, its ``columns`` and by how many seconds its
    watermark is behind (``lag``). The query, in which ``{name}`` stands for a table, runs over the few rows as often as
    ``warm`` says, then over the many. With a ``folder`` the rows of one more run, of columns ``result``, are written
    there as CSV.
    """
    few, many = (query.format(**{name: f"{name}_{size}" for name in tables}) for size in ("few", "many"))
    with Session() as session:
        for name, table in tables.items():
            for size in ("few", "many"):
                behind = f"ev - INTERVAL '{table['lag']}' SECOND"
                session.table(f"{name}_{size}", table["columns"], table[size], behind)
        for _ in range(warm):
            session.drained(few)
        found = [session.drained(many) for _ in range(rounds)]
        if folder:
            session.table("kept", result, folder)
            session.run(f"INSERT INTO kept {many}")
    return {"seconds": [seconds for seconds, _ in found], "processor": [used for _, used in found]}
