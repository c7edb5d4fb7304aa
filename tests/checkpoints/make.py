"""Makes checkpoints in the format of this version: ``python tests/checkpoints/make.py``, from the root.

Each folder ``format_<n>/<name>`` is a pipeline that stopped halfway, with a plan of that format: ``script.sql``,
``home`` with the log of its stream, ``checkpoint`` and ``out``. Existing folders are not changed: an older version
wrote them. ``feed`` writes the items; `tests/state/test_old_checkpoints.py` sends the second half.
"""

from __future__ import annotations

import os
import re
import shutil
import zlib
from pathlib import Path

import rowtime as rt
from rowtime.plan.stored import FORMAT

HERE = Path(__file__).parent
PLACE = b"/data/checkpoints"
"""The path that the files contain, independent of the machine."""
ITEMS = 12
STREAM = "CREATE STREAM s (k STRING, v BIGINT, ev TIMESTAMP){of_events};\n"
SINK = "CREATE STREAM found ({columns}) USING parquet OPTIONS (path 'out');\n"
SCRIPTS = {
    "sorted_groups": (
        "m TIMESTAMP, k STRING, c BIGINT, total BIGINT",
        """CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, k, v FROM s ORDER BY ev WITHIN INTERVAL '20' SECOND;
CREATE PUMP counts AS INSERT INTO found SELECT STREAM FLOOR(x.ROWTIME TO MINUTE) AS m, k, COUNT(*) AS c,
  SUM(v) AS total FROM sorted AS x GROUP BY FLOOR(x.ROWTIME TO MINUTE), k;
""",
    ),
    "joined_frames": (
        "k STRING, v BIGINT, other BIGINT, total BIGINT",
        """CREATE VIEW sums AS SELECT STREAM k, v, SUM(v) OVER (PARTITION BY k ORDER BY x.ROWTIME
  RANGE INTERVAL '1' MINUTE PRECEDING) AS total FROM s AS x;
CREATE PUMP pairs AS INSERT INTO found SELECT STREAM a.k, a.v, b.v AS other, a.total
  FROM sums OVER (RANGE INTERVAL '30' SECOND PRECEDING) AS a
  JOIN s OVER (RANGE INTERVAL '30' SECOND PRECEDING) AS b ON a.k = b.k;
""",
    ),
    "sessions": (
        "k STRING, c BIGINT, since TIMESTAMP",
        """CREATE PUMP visits AS INSERT INTO found SELECT STREAM k, COUNT(*) AS c,
  SESSION_START(x.ROWTIME, INTERVAL '20' SECOND) AS since FROM s AS x
  GROUP BY SESSION(x.ROWTIME, INTERVAL '20' SECOND), k;
""",
    ),
}
SCRIPTS |= {
    "panes_and_changes": (
        "k STRING, since TIMESTAMP, c BIGINT, total BIGINT, change STRING",
        """CREATE PUMP fires AS INSERT INTO found SELECT STREAM k, PANE_START AS since, COUNT(DISTINCT v) AS c,
  SUM(v) AS total FROM s GROUP BY PANES(ev, DURATION INTERVAL '40' SECOND, DISCARD AGE INTERVAL '2' MINUTE), k
  EMIT CHANGES;
""",
    ),
    "snapshots": (
        "k STRING, c BIGINT, since TIMESTAMP, till TIMESTAMP",
        """CREATE VIEW known AS SELECT STREAM k, COUNT(*) AS c FROM ALTER_DURATION(s, INTERVAL '1' MINUTE) AS x
  GROUP BY SNAPSHOT(), k EMIT INTERVALS (since, till) FULLY ORDERED;
CREATE PUMP alive AS INSERT INTO found SELECT STREAM k, c, since, till FROM known;
""",
    ),
    "changes_of_joined_events": (
        "k STRING, v BIGINT, other BIGINT, change STRING",
        """CREATE VIEW long AS SELECT STREAM k, v FROM ALTER_DURATION(s, INTERVAL '1' MINUTE) AS x;
CREATE VIEW pairs AS SELECT STREAM a.k, a.v, b.v AS other FROM long AS a JOIN long AS b ON a.k = b.k EMIT CHANGES;
CREATE PUMP told AS INSERT INTO found SELECT STREAM k, v, other, change FROM pairs;
""",
    ),
}
_EVENTS = " EVENT SHAPE POINT (ev) BOUND EVERY 3 ROWS DELAY INTERVAL '20' SECOND"
OF_EVENTS = {
    "panes_and_changes": " EVENT TIME (ev, LAG INTERVAL '5' SECOND)",
    "snapshots": _EVENTS,
    "changes_of_joined_events": _EVENTS,
}
SCRIPTS["typed_edge"] = (
    "m BIGINT NOT NULL, c INT CHECK (c < 1000), total DECIMAL(12, 2)",
    """CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, k, v FROM s
  ORDER BY ev WITHIN INTERVAL '20' SECOND EARLY BEYOND INTERVAL '1' HOUR;
CREATE VIEW best AS SELECT STREAM v, MAX(v) OVER (ORDER BY x.ROWTIME ROWS UNBOUNDED PRECEDING) AS m FROM sorted AS x;
CREATE PUMP tops AS INSERT INTO found SELECT STREAM m, COUNT(*) AS c, SUM(v) AS total FROM best GROUP BY m;
""",
)
SCRIPTS["renamed_view"] = (SCRIPTS["sorted_groups"][0], SCRIPTS["sorted_groups"][1].replace("sorted", "in_order"))
SCRIPTS["renamed_running_call"] = (SCRIPTS["typed_edge"][0], SCRIPTS["typed_edge"][1].replace("best", "running"))
BEFORE = {"renamed_view": "sorted_groups", "renamed_running_call": "typed_edge"}
"""Pipelines whose first tick ran another script."""


def script(name: str) -> str:
    """The SQL of a pipeline."""
    columns, query = SCRIPTS[name]
    return STREAM.format(of_events=OF_EVENTS.get(name, "")) + SINK.format(columns=columns) + query


def feed(first: int, end: int) -> None:
    """Write some of ``ITEMS`` to the home in this folder: disorder, ties, nulls, late rows, the end."""
    with rt.writer("s", home="home") as log:
        for number in range(first, end):
            seconds = sorted(number * 25 + second for second in (0, 11, 5, 11))
            rows = [{"rowtime": _at(n), "k": f"k{n % 3}", "v": n, "ev": _at(n + 40 * (n % 2))} for n in seconds]
            late = {"rowtime": _at(seconds[-1]), "k": None, "v": None, "ev": _at(0) if number % 2 else None}
            log.insert([*rows, late])
            log.set_rowtime_bound(_at(seconds[-1]))
        if end == ITEMS:
            log.end()


def _at(second: int) -> str:
    return f"2024-01-01 10:{second // 60:02}:{second % 60:02}"


def run() -> None:
    """Run the script of this folder over the present input."""
    made = rt.Pipeline(home="home").sql(Path("script.sql").read_text(encoding="utf-8"))
    made.start("checkpoint", available_now=True).awaitTermination()


def main() -> None:
    for name in SCRIPTS:
        folder = HERE / f"format_{FORMAT}" / name
        if folder.exists():
            continue
        folder.mkdir(parents=True)
        os.chdir(folder)
        for first in range(0, ITEMS // 2, 2):
            text = script(name if first else BEFORE.get(name, name))
            Path("script.sql").write_text(text, encoding="utf-8")
            define()
            feed(first, first + 2)
            run()
        shutil.rmtree("checkpoint/spark", ignore_errors=True)
        move(folder, bytes(HERE))


def move(folder: Path, place: bytes) -> None:
    """Replace the path of a pipeline in ``place`` by ``PLACE`` in all its files, and compute the checksums again."""
    for path in (path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        if place in data:
            body, seal, _ = re.split(rb'(,"sum":"[0-9a-f]{8}"\}\s*)\Z', data)
            body = body.replace(place, PLACE)
            path.write_bytes(body + b',"sum":"%08x"}' % zlib.crc32(body))
            assert len(seal) == len(b',"sum":"00000000"}')


def define() -> None:
    """Define the streams of the script, so that rows can be written before it runs."""
    made = rt.Pipeline(home="home").sql(Path("script.sql").read_text(encoding="utf-8"))
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json())


if __name__ == "__main__":
    main()
