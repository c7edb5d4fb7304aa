#!/usr/bin/env bash
# tzdata 2026.1 with Python's zoneinfo: the local date of an ascending UTC time can fall.
#
# Behaviour: until 2011 clocks in St. John's went back at one minute past midnight. For a minute it was already
# tomorrow, and then it was today again for an hour. So a local date is no safe partition or day of a watermark: it goes
# back. After 1900 it did so in a few zones only, among them Phoenix in 1944, Guam in 1969 and Casey in 2010.
# Output seen (tzdata 2026.1, Python 3.11): the lines at the end. The script fails if they change.
set -euo pipefail
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
python3 -m venv "$d/v"
"$d/v/bin/pip" install --quiet tzdata==2026.1
PYTHONTZPATH="" "$d/v/bin/python" - <<'P' | tee "$d/out"
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

for name, at in (
    ("America/St_Johns", (2010, 11, 7, 2, 31)),
    ("America/Phoenix", (1944, 10, 1, 6, 1)),
    ("Pacific/Guam", (1969, 1, 25, 13, 1)),
    ("Antarctica/Casey", (2010, 3, 4, 15, 0)),
):
    change = datetime(*at, tzinfo=timezone.utc)
    moments = (change - timedelta(microseconds=1), change)
    before, after = (moment.astimezone(ZoneInfo(name)) for moment in moments)
    print(f"{name}: {before:%Y-%m-%d %H:%M:%S}, a microsecond later {after:%Y-%m-%d %H:%M:%S}")
P
diff "$d/out" - <<'T'
America/St_Johns: 2010-11-07 00:00:59, a microsecond later 2010-11-06 23:01:00
America/Phoenix: 1944-10-01 00:00:59, a microsecond later 1944-09-30 23:01:00
Pacific/Guam: 1969-01-26 00:00:59, a microsecond later 1969-01-25 23:01:00
Antarctica/Casey: 2010-03-05 01:59:59, a microsecond later 2010-03-04 23:00:00
T
echo "as described"
