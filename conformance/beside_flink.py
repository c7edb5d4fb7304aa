"""Flink's answers to random pipelines (`flink_views`), from one process of PyFlink over the same rows as JSON."""

from __future__ import annotations

import datetime as dt
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

from benchmarks.flink import Session
from conformance import flink_views
from conformance.differential import NAMES, SORTED, Inputs, Row
from conformance.pipelines import Pipeline
from conformance.views import View

_TYPES: Final = "v INT, n BIGINT, c DECIMAL(10, 2), d DOUBLE, f BOOLEAN, `day` DATE, ts TIMESTAMP(3)"
_TABLE: Final = """CREATE TEMPORARY TABLE {name} (rowtime TIMESTAMP(3), k STRING{key}, {types},
  WATERMARK FOR rowtime AS rowtime - INTERVAL '{late}' MINUTE)
  WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'json', 'json.timestamp-format.standard' = 'SQL')"""
_KEYED: Final = " PRIMARY KEY NOT ENFORCED"
"""A table with a key has versions. Flink also makes them of the last row of each key (ROW_NUMBER ... DESC = 1), but by
arrival: there it loses a row that comes behind one with a later rowtime."""


class Flink:
    """Flink, in one process."""

    name: Final = "PyFlink"
    unit: Final = dt.timedelta(milliseconds=1)  # of its times

    def __init__(self) -> None:
        self._session: Session | None = None
        self._rows: Inputs | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="rowtime-flink-")
        self._files = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._session is not None:
            self._session.__exit__()
        self._folder.cleanup()

    def drawn(self, seed: str) -> Pipeline:
        """Return the pipeline of a seed."""
        return flink_views.drawn(seed)

    def shown(self, pipeline: Pipeline) -> str:
        """Return the text of its query."""
        return ";\n".join(f"{view.name}: {view.theirs}" for view in pipeline.views)

    def answer(self, inputs: Inputs, pipeline: Pipeline) -> list[Row] | str:
        """Return its rows, rowtimes first; or its error, if it fails."""
        session, made = self._over(inputs), []
        try:
            for view in pipeline.views[:-1]:
                session.run(f"CREATE TEMPORARY VIEW {view.name} AS {view.theirs}")
                made.append(view.name)
            found = session.rows(pipeline.views[-1].theirs)
        except RuntimeError as error:
            causes = [line for line in f"{error}".splitlines() if line.startswith("Caused by")]
            return causes[-1] if causes else f"{error}"[:1000]
        finally:
            for name in reversed(made):
                session.run(f"DROP TEMPORARY VIEW {name}")
        return [values(pipeline.views[-1], row) for row in found]

    def _over(self, inputs: Inputs) -> Session:
        """Return the session with these rows as its tables."""
        if self._session is not None and self._rows is inputs:
            return self._session
        if self._session is None:
            self._session = Session()
        elif self._rows is not None:
            for dropped in ("versions", "a", "b"):
                self._session.run(f"DROP TEMPORARY TABLE {dropped}")
        rows = {name: [*map(_told, rows.to_pylist())] for name, rows in inputs.streams.items()}
        late = {name: SORTED // 60 if name in inputs.mixed else 0 for name in rows}
        for name, of, key in (("a", "a", ""), ("b", "b", ""), ("versions", "b", _KEYED)):
            self._files += 1
            path = Path(self._folder.name) / f"{self._files}.json"
            kept = [row for row in rows[of] if row["k"] is not None or not key]
            path.write_text("".join(json.dumps(row, default=str) + "\n" for row in kept))
            self._session.run(_TABLE.format(name=name, key=key, types=_TYPES, late=late[of], path=path))
        self._rows = inputs
        return self._session


def _told(row: dict[str, Any]) -> dict[str, Any]:
    times = {name: value.isoformat(" ", "milliseconds")[:23] for name in ("rowtime", "ts")
             if (value := row[name]) is not None}  # fmt: skip
    return {**{name: row[name] for name in ("rowtime", *NAMES)}, **times}


def values(view: View, row: Sequence[Any]) -> Row:
    """Return a row of Flink with values as rowtime has them."""
    kinds = ("ts", *view.columns.values())
    return tuple(_value(kind, value) for kind, value in zip(kinds, row, strict=True))


def _value(kind: str, value: Any) -> Any:
    if value is None or kind in ("text", "bool"):
        return value
    if kind == "ts":
        return dt.datetime.fromisoformat(value.removesuffix("Z"))
    return dt.date.fromisoformat(value) if kind == "date" else float(value)
