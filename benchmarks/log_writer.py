"""Writes numbered rows into the stream log ``s`` at a steady rate: ``python -m benchmarks.log_writer HOME ROWS RATE``.

It checks a hundred times per second how many rows to write, and prints the seconds that all took.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pyarrow as pa

from rowtime.client.home import Home
from rowtime.client.writer import open_writer

PAUSE = 0.01  # seconds


def main(home: str, rows: str, rate: str) -> None:
    whole, sent, began = int(rows), 0, time.perf_counter()
    with open_writer("s", home=Home(Path(home))) as writer:
        while sent < whole:
            due = min(whole, int((time.perf_counter() - began) * int(rate)))
            if due > sent:
                writer.insert(pa.table({"n": pa.array(range(sent, due), pa.int64())}))
            sent = due
            time.sleep(PAUSE)
    print(time.perf_counter() - began)


if __name__ == "__main__":
    main(*sys.argv[1:])
