"""How long `rowtime check` takes over a script of 200 statements, without a JVM: a process of its own each time."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

from benchmarks.measurement import Measurement, Result, against, middle

if TYPE_CHECKING:
    from benchmarks.engines import Engines

STATEMENTS, SECONDS = 200, 2.0
EACH = """
CREATE VIEW v{n} AS SELECT STREAM oid, qty + {n} AS q, buyer FROM s WHERE qty > {n};
CREATE STREAM o{n} (h TIMESTAMP, buyer STRING, c BIGINT, q BIGINT);
CREATE PUMP p{n} AS INSERT INTO o{n} SELECT STREAM FLOOR(v.ROWTIME TO HOUR) AS h, buyer, COUNT(*) AS c, SUM(q) AS q
  FROM v{n} AS v GROUP BY FLOOR(v.ROWTIME TO HOUR), buyer;"""


def measure(engines: Engines, *, short: bool) -> Result:
    script = engines.fresh("check") / "script.sql"
    parts = [EACH.format(n=n) for n in range((STATEMENTS - 2) // 3)]
    first, last = "CREATE STREAM s (oid BIGINT ASCENDING, qty INT, buyer STRING);", "SELECT STREAM * FROM o0;"
    script.write_text("\n".join([first, *parts, last]))
    command = [sys.executable, "-c", "from rowtime.cli.main import main; main()", "check", str(script)]
    spent = []
    for _ in range(3 if short else 9):
        began = time.perf_counter()
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        spent.append(time.perf_counter() - began)
    seconds = middle([round(1000 * one) for one in spent]) / 1000
    return {
        "statements": STATEMENTS,
        "says": said.strip(),
        "median_s": seconds,
        "ratios": [against("2 seconds", seconds / SECONDS, 1.0, most=True)],
    }


CHECK_SCRIPT = Measurement("check_script", "rowtime check of 200 statements, a process each time", measure)
