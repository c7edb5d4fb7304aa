"""Makes the events of Nexmark, runs queries over them as streams, and compares each with Spark's batch answer.

python -m examples.nexmark [q0 q5 …] [--events N] [--files N] [--output DIR]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from examples.nexmark.events import write
from examples.nexmark.queries import QUERIES, batched, difference, streamed
from rowtime.runtime.session import new_spark


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    events: Path = options.output / f"{options.events}x{options.files}"
    if not events.exists():
        write(events, options.events, options.files)
    spark, wrong = new_spark(), 0
    for query in options.queries or QUERIES:
        with tempfile.TemporaryDirectory() as place:
            began = time.perf_counter()
            ours = streamed(query, events, Path(place), spark)
            seconds = time.perf_counter() - began
        differs = difference(ours, batched(query, events, spark))
        wrong += bool(differs)
        print(f"{query:<4} {ours.num_rows:>9,} rows {seconds:>7.1f} s  {differs or 'as the batch'}", flush=True)
    spark.stop()
    return 1 if wrong else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.nexmark", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("queries", nargs="*", choices=[*QUERIES, []], help="all by default")
    parser.add_argument("--events", type=int, default=100_000, help="how many [%(default)s]")
    parser.add_argument("--files", type=int, default=4, help="of each stream, one a tick [%(default)s]")
    parser.add_argument("--output", type=Path, default=Path("out/nexmark"), help="where they are kept [%(default)s]")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
