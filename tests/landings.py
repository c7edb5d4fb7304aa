"""Landings of a day, some of them late, their panes, and the batch answer, shared by all tests of fires."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

HOURLY = """\
CREATE STREAM landings (n INT, airport STRING, at TIMESTAMP)
  EVENT TIME (at, MINIMUM GAP INTERVAL '0' SECOND);
CREATE VIEW hourly AS
  SELECT STREAM airport, PANE_START AS hour, PANE_INDEX AS n, COUNT(*) AS arrivals, SUM(landings.n) AS total
  FROM landings GROUP BY PANES(at, DURATION INTERVAL '1' HOUR, DISCARD AGE INTERVAL '6' HOUR), airport;
CREATE VIEW changed AS
  SELECT STREAM airport, PANE_START AS hour, COUNT(*) AS arrivals, SUM(landings.n) AS total FROM landings
  GROUP BY PANES(at, DURATION INTERVAL '1' HOUR, DISCARD AGE INTERVAL '6' HOUR), airport EMIT CHANGES;
"""
Landing = dict[str, object]
Answer = Counter[tuple[str, str, int, int]]
"""Airport, hour, count, and the sum of the numbers."""


def landings(seed: int) -> list[Landing]:
    """Landings of a day, some late by hours, and some with an unknown airport."""
    chance = random.Random(seed)
    rows = []
    for n in range(300):
        minute = max(0, n * 5 - (chance.randrange(600) if chance.random() < 0.2 else 0))
        at = f"2024-01-01 {minute // 60:02d}:{minute % 60:02d}:00" if minute < 1440 else "2024-01-02 00:30:00"
        rows.append({"n": n, "airport": chance.choice(["AMS", "BOS", None]), "at": at})
    return rows


def batch(rows: Sequence[Landing], refused: set[int]) -> Answer:
    """The count of each hour, without the refused rows."""
    groups: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        if row["n"] not in refused:
            groups.setdefault((str(row["airport"] or "?"), f"{str(row['at'])[:13]}:00"), []).append(int(str(row["n"])))
    return Counter((*group, len(found), sum(found)) for group, found in groups.items())
