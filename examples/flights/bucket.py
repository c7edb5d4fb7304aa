"""The flights into a Delta table in a bucket, on an S3 server of this machine, read back by polars.

    python -m examples.flights.bucket [--home DIR] [--checkpoint DIR]

The server keeps the bucket in memory for as long as this runs, so each run begins with a checkpoint that is not there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

import rowtime as rt
from examples.flights.__main__ import TICK
from examples.flights.feed import feed
from examples.s3_server import KEYS, REGION, started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BUCKET: Final = "flights"
TABLE: Final = f"s3://{BUCKET}/hourly"


def main(arguments: Sequence[str] | None = None) -> int:
    home, checkpoint = _places(arguments)
    if checkpoint.exists():
        print(f"{checkpoint} is there, and the bucket of its table is not. Take another --checkpoint.")
        return 1
    feed(home)
    url, server = started(BUCKET)
    try:
        run(home, checkpoint, url)
        found = busiest(url)
    finally:
        server.terminate()
        server.wait()
    print(found)
    return 0


def run(home: Path, checkpoint: Path, endpoint: str, spark: SparkSession | None = None) -> None:
    """Count the departures into the table, a version of it a tick."""
    key, secret = KEYS
    told = {"endpoint": endpoint, "region": REGION, "access_key_id": key, "secret_access_key": secret}
    rt.configure_stores({f"s3://{BUCKET}": told})
    text = Path(__file__).with_name("flights.sql").read_text(encoding="utf-8")
    pipeline = rt.Pipeline(spark, home=home)
    pipeline.sql(text.replace("USING parquet", "USING delta"), variables={"output": TABLE})
    pipeline.run_available(checkpoint, limits=TICK)


def busiest(endpoint: str, size: int = 5) -> pl.DataFrame:
    """The hours with the most departures, as another reader of Delta finds them in the table."""
    key, secret = KEYS
    options = {"aws_endpoint_url": endpoint, "aws_region": REGION, "aws_allow_http": "true"}
    options |= {"aws_access_key_id": key, "aws_secret_access_key": secret}
    hours = pl.scan_delta(TABLE, storage_options=options).group_by("hour").agg(pl.col("departures").sum())
    return hours.sort(["departures", "hour"], descending=[True, False]).head(size).collect()


def _places(arguments: Sequence[str] | None) -> tuple[Path, Path]:
    parser = argparse.ArgumentParser(
        prog="python -m examples.flights.bucket", description=(__doc__ or "").split("\n")[0]
    )
    under = Path("out/flights")
    parser.add_argument("--home", type=Path, default=under / "home", help="the streams [%(default)s]")
    parser.add_argument("--checkpoint", type=Path, default=under / "bucket", help="[%(default)s]")
    given = parser.parse_args(arguments)
    return given.home, given.checkpoint


if __name__ == "__main__":
    sys.exit(main())
