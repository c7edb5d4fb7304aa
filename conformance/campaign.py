"""Runs all suites and random pipelines, prints the results, and writes `docs/conformance.md` if asked to."""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.flink import is_there
from conformance import beam, flink, restated
from conformance.beside_flink import Flink
from conformance.differential import compare
from conformance.page import page
from conformance.verdicts import OUTCOMES, Suite, wrong
from rowtime.runtime.session import derive, new_spark

PAGE: Final = Path(__file__).parents[1] / "docs" / "conformance.md"
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rowtime" / "suites"
CONF: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
}


def main() -> int:
    """Return 0 if nothing is wrong; otherwise print what is wrong and return 1."""
    asked, began = _arguments(), time.monotonic()
    spark = derive(new_spark([], master="local[2]", conf=CONF))
    folder = Path(asked.suites) if asked.suites else None
    suites = [beam.suite(spark, CACHE, folder), *restated.suites(spark)]
    if asked.flink:
        suites.append(flink.suite(spark, asked.seed, asked.flink))
    for suite in suites:
        print(_line(suite), flush=True)
    noted = Path(asked.noted) if asked.noted else None
    told = partial(print, flush=True)
    compared = [compare(spark, asked.seed, asked.pipelines, told, noted)]
    if asked.flink_pipelines and is_there():
        with Flink() as other:
            compared.append(compare(spark, asked.seed, asked.flink_pipelines, told, noted, other))
    if asked.write:
        PAGE.write_text(page(suites, compared, asked.seed))
    found = [*wrong(suites), *(line for one in compared for line in one.wrong)]
    for one in found:
        print(f"\nWRONG: {one}")
    print(f"{len(found)} wrong; {time.monotonic() - began:.0f} s")
    return int(bool(found))


def _line(suite: Suite) -> str:
    if suite.missing:
        return f"{suite.name}: not run: {suite.missing}"
    return f"{suite.name}: {', '.join(f'{suite.count(one)} {one}' for one in OUTCOMES)}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m conformance")
    parser.add_argument("--pipelines", type=int, default=2_000, help="random pipelines beside DuckDB")
    parser.add_argument("--flink-pipelines", type=int, default=60, help="random pipelines beside PyFlink; 0 for none")
    parser.add_argument("--seed", type=int, default=1, help="of the random pipelines and rows")
    parser.add_argument("--flink", type=int, default=3, help="rounds of queries beside PyFlink; 0 for none")
    parser.add_argument(
        "--suites", default=os.environ.get("SUITES", ""), help="a folder with sources of others' suites"
    )
    parser.add_argument(
        "--noted", default="", help="a folder: notes what was compared, and goes on from there after a stop"
    )
    parser.add_argument("--write", action="store_true", help="write docs/conformance.md")
    return parser.parse_args()
