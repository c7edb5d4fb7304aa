"""The scripts of the pipelines: one or more of each kind of operator with state, and every sink of files.

All of them read the streams ``a`` and ``b`` (a key, a value, an event time that may be late or missing, an end that may
be missing); ``{out}`` is the folder for directories, and ``merged`` is a stream log that is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

COLUMNS = "(k STRING, v BIGINT, ev TIMESTAMP, till TIMESTAMP)"
SORTED = f"""
CREATE STREAM a {COLUMNS};
CREATE STREAM b {COLUMNS};
CREATE VIEW sa AS SELECT STREAM ev AS ROWTIME, k, v FROM a ORDER BY ev WITHIN INTERVAL '20' SECOND;
CREATE VIEW sb AS SELECT STREAM ev AS ROWTIME, k, v FROM b ORDER BY ev WITHIN INTERVAL '20' SECOND;
"""
EVENTS = f"""
CREATE STREAM a {COLUMNS} EVENT SHAPE INTERVAL (ev, till) ON LATE ADJUST BOUND EVERY 3 ROWS DELAY INTERVAL '20' SECOND;
CREATE STREAM b {COLUMNS} EVENT SHAPE INTERVAL (ev, till) BOUND EVERY 3 ROWS DELAY INTERVAL '20' SECOND;
"""
SHAPES: Mapping[str, str] = {
    "sorted groups": f"""{SORTED}
CREATE STREAM minutes (k STRING, c BIGINT, total BIGINT) USING parquet OPTIONS (path '{{out}}/minutes');
CREATE STREAM refused (k STRING, reason STRING) USING json OPTIONS (path '{{out}}/refused');
CREATE STREAM merged (k STRING, v BIGINT);
CREATE VIEW both AS SELECT STREAM k, v FROM sa UNION ALL SELECT STREAM k, v FROM sb;
CREATE PUMP p1 AS INSERT INTO minutes SELECT STREAM k, COUNT(*) AS c, SUM(v) AS total FROM both AS x
  GROUP BY FLOOR(x.ROWTIME TO MINUTE), k;
CREATE PUMP p2 AS INSERT INTO refused SELECT STREAM k, reason FROM sa.rejected;
CREATE PUMP p3 AS INSERT INTO merged SELECT STREAM k, v FROM both;
""",
    "joined windows": f"""{SORTED}
CREATE STREAM pairs (k STRING, v BIGINT, other BIGINT) USING parquet OPTIONS (path '{{out}}/pairs');
CREATE PUMP p1 AS INSERT INTO pairs SELECT STREAM l.k, l.v, r.v AS other
  FROM sa OVER (RANGE INTERVAL '30' SECOND PRECEDING) AS l
  JOIN sb OVER (RANGE INTERVAL '30' SECOND PRECEDING) AS r ON l.k = r.k;
""",
    "sums over frames": f"""{SORTED}
CREATE STREAM sums (k STRING, v BIGINT, total BIGINT) USING csv OPTIONS (path '{{out}}/sums', header 'true');
CREATE PUMP p1 AS INSERT INTO sums SELECT STREAM k, v, SUM(v) OVER (PARTITION BY k ORDER BY x.ROWTIME
  RANGE INTERVAL '1' MINUTE PRECEDING) AS total FROM sa AS x;
""",
    "sessions": f"""{SORTED}
CREATE STREAM visits (k STRING, c BIGINT) USING parquet OPTIONS (path '{{out}}/visits');
CREATE PUMP p1 AS INSERT INTO visits SELECT STREAM k, COUNT(*) AS c FROM sa AS x
  GROUP BY SESSION(x.ROWTIME, INTERVAL '20' SECOND), k;
""",
    "hops": f"""{SORTED}
CREATE STREAM hops (k STRING, c BIGINT) USING parquet OPTIONS (path '{{out}}/hops', ordered 'true');
CREATE PUMP p1 AS INSERT INTO hops SELECT STREAM k, COUNT(*) AS c FROM sb AS x
  GROUP BY HOP(x.ROWTIME, INTERVAL '20' SECOND, INTERVAL '1' MINUTE), k;
""",
    "panes": f"""
CREATE STREAM a {COLUMNS} EVENT TIME (ev, LAG INTERVAL '5' SECOND, MINIMUM GAP INTERVAL '1' SECOND);
CREATE STREAM fires (k STRING, s TIMESTAMP, timing STRING, n BIGINT, c BIGINT)
  USING parquet OPTIONS (path '{{out}}/fires');
CREATE STREAM refused (k STRING, reason STRING) USING json OPTIONS (path '{{out}}/refused');
CREATE VIEW fired AS SELECT STREAM k, PANE_START AS s, PANE_TIMING AS timing, PANE_INDEX AS n, COUNT(*) AS c
  FROM a GROUP BY PANES(ev, DURATION INTERVAL '20' SECOND, DISCARD AGE INTERVAL '1' MINUTE), k
  EMIT EVERY INTERVAL '10' SECOND;
CREATE PUMP p1 AS INSERT INTO fires SELECT STREAM * FROM fired;
CREATE PUMP p2 AS INSERT INTO refused SELECT STREAM k, reason FROM fired.rejected;
""",
    "changes of panes": f"""
CREATE STREAM a {COLUMNS} EVENT TIME (ev);
CREATE STREAM merged (k STRING, s TIMESTAMP, distinct_values BIGINT, change STRING);
CREATE STREAM totals (k STRING, s TIMESTAMP, total BIGINT, change STRING) USING csv OPTIONS (path '{{out}}/totals');
CREATE PUMP p1 AS INSERT INTO merged SELECT STREAM k, PANE_START AS s, COUNT(DISTINCT v) AS distinct_values
  FROM a GROUP BY k,
  PANES(ev, DURATION INTERVAL '40' SECOND, PERIOD INTERVAL '20' SECOND, DISCARD AGE INTERVAL '1' MINUTE) EMIT CHANGES;
CREATE PUMP p2 AS INSERT INTO totals SELECT STREAM k, PANE_START AS s, SUM(v) AS total
  FROM a GROUP BY PANES(ev, DURATION INTERVAL '20' SECOND, DISCARD AGE INTERVAL '2' MINUTE), k EMIT CHANGES;
""",
    "snapshots of events": f"""{EVENTS}
CREATE STREAM alive (k STRING, c BIGINT, most BIGINT, s TIMESTAMP, e TIMESTAMP)
  USING parquet OPTIONS (path '{{out}}/alive');
CREATE VIEW known AS SELECT STREAM k, COUNT(*) AS c, MAX(v) AS most FROM a GROUP BY SNAPSHOT(), k
  EMIT INTERVALS (s, e) FULLY ORDERED;
CREATE PUMP p1 AS INSERT INTO alive SELECT STREAM k, c, most, s, e FROM known;
""",
    "windows of events": f"""{EVENTS}
CREATE STREAM merged (k STRING, c BIGINT, s TIMESTAMP, e TIMESTAMP);
CREATE VIEW windows AS SELECT STREAM k, COUNT(*) AS c FROM ALTER_DURATION(b, INTERVAL '15' SECOND) AS x
  GROUP BY HOP(INTERVAL '10' SECOND, INTERVAL '30' SECOND), k EMIT INTERVALS (s, e);
CREATE PUMP p1 AS INSERT INTO merged SELECT STREAM k, c, s, e FROM windows;
""",
    "joined events": f"""{EVENTS}
CREATE STREAM pairs (k STRING, v BIGINT, other BIGINT, edge STRING, s TIMESTAMP, e TIMESTAMP)
  USING parquet OPTIONS (path '{{out}}/pairs');
CREATE STREAM alone (k STRING, v BIGINT, s TIMESTAMP, e TIMESTAMP) USING json OPTIONS (path '{{out}}/alone');
CREATE VIEW together AS SELECT STREAM l.k, l.v, r.v AS other FROM a AS l JOIN b AS r ON l.k = r.k
  EMIT EDGES (edge, s, e);
CREATE VIEW left_over AS SELECT STREAM l.k, l.v FROM a AS l LEFT ANTI JOIN b AS r ON l.k = r.k EMIT INTERVALS (s, e);
CREATE PUMP p1 AS INSERT INTO pairs SELECT STREAM k, v, other, edge, s, e FROM together;
CREATE PUMP p2 AS INSERT INTO alone SELECT STREAM k, v, s, e FROM left_over;
""",
    "changes of snapshots": f"""{EVENTS}
CREATE VIEW so_far AS SELECT STREAM k, COUNT(*) AS c FROM a GROUP BY SNAPSHOT(), k EMIT CHANGES;
CREATE STREAM merged (k STRING, c BIGINT, change STRING);
CREATE PUMP p1 AS INSERT INTO merged SELECT STREAM k, c, change FROM so_far;
""",
    "changes of joined events": f"""{EVENTS}
CREATE VIEW pairs AS SELECT STREAM l.k, l.v, r.v AS other FROM a AS l JOIN b AS r ON l.k = r.k EMIT CHANGES;
CREATE STREAM told (k STRING, v BIGINT, other BIGINT, change STRING) USING parquet OPTIONS (path '{{out}}/told');
CREATE PUMP p1 AS INSERT INTO told SELECT STREAM k, v, other, change FROM pairs;
""",
    "bounds of another stream": f"""
CREATE STREAM a {COLUMNS} EVENT SHAPE POINT (ev) BOUND EVERY 2 ROWS DELAY INTERVAL '20' SECOND;
CREATE STREAM b {COLUMNS} EVENT SHAPE INTERVAL (ev, till) ON LATE ADJUST BOUND FROM a DELAY INTERVAL '10' SECOND;
CREATE STREAM pairs (k STRING, v BIGINT, other BIGINT, s TIMESTAMP, e TIMESTAMP)
  USING parquet OPTIONS (path '{{out}}/pairs');
CREATE STREAM refused (k STRING, reason STRING) USING json OPTIONS (path '{{out}}/refused');
CREATE VIEW together AS SELECT STREAM l.k, l.v, r.v AS other FROM a AS l JOIN b AS r ON l.k = r.k EMIT INTERVALS (s, e);
CREATE PUMP p1 AS INSERT INTO pairs SELECT STREAM k, v, other, s, e FROM together;
CREATE PUMP p2 AS INSERT INTO refused SELECT STREAM k, reason FROM b.rejected;
""",
    "edges": f"""
CREATE STREAM a {COLUMNS} EVENT SHAPE EDGE (ev, till) BOUND EVERY 4 ROWS DELAY INTERVAL '20' SECOND;
CREATE STREAM stitched (k STRING, s TIMESTAMP, e TIMESTAMP) USING parquet OPTIONS (path '{{out}}/stitched');
CREATE STREAM refused (k STRING, reason STRING) USING json OPTIONS (path '{{out}}/refused');
CREATE VIEW keys AS SELECT STREAM k FROM a;
CREATE VIEW whole AS SELECT STREAM k FROM STITCH(keys) AS x EMIT INTERVALS (s, e);
CREATE PUMP p1 AS INSERT INTO stitched SELECT STREAM k, s, e FROM whole;
CREATE PUMP p2 AS INSERT INTO refused SELECT STREAM k, reason FROM a.rejected;
""",
    "signals": f"""
CREATE STREAM b {COLUMNS} EVENT SHAPE POINT (ev) BOUND EVERY 4 ROWS DELAY INTERVAL '20' SECOND;
CREATE STREAM merged (k STRING, v BIGINT, s TIMESTAMP, e TIMESTAMP);
CREATE VIEW signals AS SELECT STREAM k, v FROM POINT_TO_SIGNAL(b, k) AS x EMIT INTERVALS (s, e);
CREATE PUMP p1 AS INSERT INTO merged SELECT STREAM k, v, s, e FROM signals;
""",
    "table function": f"""
CREATE STREAM a {COLUMNS};
CREATE STREAM tallied (k STRING, seen BIGINT, total BIGINT) USING parquet OPTIONS (path '{{out}}/tallied');
CREATE PUMP p1 AS INSERT INTO tallied SELECT STREAM k, seen, total
  FROM STREAM(tally(CURSOR(SELECT STREAM k, v FROM a)));
CREATE PUMP p2 AS INSERT INTO result SELECT STREAM k, MAX(seen) AS seen
  FROM STREAM(tally(CURSOR(SELECT STREAM ev AS ROWTIME, k, v FROM a ORDER BY ev WITHIN INTERVAL '20' SECOND))) AS x
  GROUP BY FLOOR(x.ROWTIME TO MINUTE), k;
""",
    "guard with votes": f"""
CREATE STREAM a {COLUMNS} EARLY BEYOND INTERVAL '2' MINUTE RESYNC AFTER 2 ROWS;
CREATE STREAM b {COLUMNS};
CREATE STREAM kept (k STRING, v BIGINT) USING parquet OPTIONS (path '{{out}}/kept');
CREATE STREAM merged (k STRING, v BIGINT);
CREATE STREAM refused (k STRING, reason STRING) USING json OPTIONS (path '{{out}}/refused');
CREATE VIEW jumping AS SELECT STREAM k, v, CASE WHEN v > 6 THEN ev + INTERVAL '1' HOUR ELSE ev END AS t FROM b;
CREATE VIEW guarded AS SELECT STREAM t AS ROWTIME, k, v FROM jumping
  ORDER BY t WITHIN INTERVAL '20' SECOND EARLY BEYOND INTERVAL '1' MINUTE RESYNC AFTER 2 ROWS;
CREATE PUMP p1 AS INSERT INTO kept SELECT STREAM k, v FROM a;
CREATE PUMP p2 AS INSERT INTO merged SELECT STREAM k, v FROM guarded;
CREATE PUMP p3 AS INSERT INTO refused SELECT STREAM k, reason FROM guarded.rejected;
""",
    "buffers": f"""{SORTED}
CREATE STREAM delayed (k STRING) USING parquet OPTIONS (path '{{out}}/delayed');
CREATE STREAM kinds (m TIMESTAMP, k STRING) USING json OPTIONS (path '{{out}}/kinds');
CREATE STREAM staggered (k STRING, c BIGINT) USING csv OPTIONS (path '{{out}}/staggered');
CREATE STREAM merged (k STRING, v BIGINT);
CREATE PUMP p1 AS INSERT INTO delayed SELECT STREAM k FROM STREAM(DELAY(TABLE sa, INTERVAL '30' SECOND)) AS d;
CREATE PUMP p2 AS INSERT INTO kinds SELECT STREAM DISTINCT FLOOR(x.ROWTIME TO MINUTE) AS m, k FROM sa AS x;
CREATE PUMP p3 AS INSERT INTO staggered SELECT STREAM k, COUNT(*) AS c FROM b
  WINDOWED BY STAGGER (PARTITION BY FLOOR(ev TO MINUTE), k RANGE INTERVAL '30' SECOND);
CREATE PUMP p4 AS INSERT INTO merged SELECT STREAM k, v FROM sb AS x ORDER BY FLOOR(x.ROWTIME TO MINUTE), k, v;
""",
    "two pumps on one target": f"""{SORTED}
CREATE STREAM rows (k STRING NOT NULL, v TINYINT CHECK (v < 8)) USING parquet OPTIONS (path '{{out}}/rows');
CREATE STREAM merged (k STRING, v SMALLINT NOT NULL);
CREATE PUMP p1 AS INSERT INTO rows SELECT STREAM k, v FROM sa;
CREATE PUMP p2 AS INSERT INTO rows SELECT STREAM k, v FROM sb;
CREATE PUMP p3 AS INSERT INTO merged SELECT STREAM k, v FROM a;
CREATE PUMP p4 AS INSERT INTO merged SELECT STREAM k, v FROM sb WHERE v > 2;
""",
}
TIMED = ("guard with votes",)  # whose rows have a rowtime of their own


class Tally:
    """A table function that remembers: how many rows of its writer there were, and their sum."""

    def columns(self, given: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:  # noqa: ARG002
        return [("k", "STRING"), ("seen", "BIGINT"), ("total", "BIGINT")]

    def process(self, rows: pa.Table, state: dict[str, Any]) -> pa.Table:
        out: list[dict[str, Any]] = []
        for row in rows.to_pylist():
            state["seen"] = state.get("seen", 0) + 1
            state["total"] = state.get("total", 0) + (row["v"] or 0)
            out.append({"k": row["k"], **state, "ROWTIME": row["ROWTIME"]})
        kinds = {"k": pa.string(), "seen": pa.int64(), "total": pa.int64(), "ROWTIME": pa.timestamp("us", "UTC")}
        return pa.Table.from_pylist(out, pa.schema(kinds))
