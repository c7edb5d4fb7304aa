"""Feeds the flights, runs the pipeline over them, and says what was found.

    python -m examples.flights [--home DIR] [--checkpoint DIR] [--output DIR]

It may be interrupted at any moment: the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

import rowtime as rt
from examples.flights.feed import feed
from examples.flights.records import AIRPORTS, INSTANT
from rowtime.cli.display import Display

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLIGHTS: Final = 336_776
TICK: Final = rt.Limits(rows=25_000)
"""At most so many rows of each stream at a time, so that there is progress to see."""

INTERRUPTED: Final = 130  # what a shell expects of a program that was interrupted

Ledger = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Places:
    """Where the streams, the checkpoint of the pipeline and its output are."""

    home: Path
    checkpoint: Path
    output: Path


@dataclass(frozen=True)
class Outcome:
    """The rows of each gate by what became of them, and the files of those it refused."""

    ledger: Ledger
    rejected: Mapping[str, Sequence[Path]]


def main(arguments: Sequence[str] | None = None) -> int:
    places, console = _places(arguments), Console()
    try:
        with _Feeding(console) as progress:
            feed(places.home, progress.fed)
        with Display() as display:
            outcome = run(places, display=display)
    except KeyboardInterrupt:
        console.print("Interrupted. The same command goes on where it stopped.")
        return INTERRUPTED
    except rt.RowtimeError as error:  # a checkpoint of an older version, say
        console.print(str(error), markup=False, highlight=False)
        return 1
    counted = hourly(places.output)
    console.print(_airports(outcome.ledger))
    console.print(_ranking("Busiest hours", "hour", counted), _ranking("Top carriers", "carrier", counted))
    for line in _sentences(places, outcome, counted):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    return 0 if _total(outcome.ledger, "in") == FLIGHTS == _accounted(outcome.ledger) else 1


def run(
    places: Places, spark: SparkSession | None = None, display: Display | None = None, listener: Any = None
) -> Outcome:
    """Process all records that are there and not processed yet."""
    text = Path(__file__).with_name("flights.sql").read_text(encoding="utf-8")
    pipeline = rt.Pipeline(spark, home=places.home)
    pipeline.sql(text, variables={"output": str(places.output)})
    listener = display.listener if display else listener
    query = pipeline.start(places.checkpoint, available_now=True, limits=TICK, listener=listener)
    if display:
        display.query = query
    try:
        query.awaitTermination()
    finally:
        query.stop()
    gates = [gate(airport) for airport in AIRPORTS]
    return Outcome({name: query.ledger[name] for name in gates}, {name: query.rejected(name) for name in gates})


def gate(airport: str) -> str:
    """The place that refuses records of an airport: the view with the T-sort."""
    return f"{airport.lower()}_departures"


def hourly(output: Path) -> pa.Table:
    """The output: hour, origin, carrier, departures. Names like _x and .x are not part of it."""
    files = [str(path) for path in sorted(output.rglob("*.parquet")) if not _hidden(path.relative_to(output))]
    table = ds.dataset(files, format="parquet").to_table()
    # Spark may write instants as INT96, which has no zone; they are UTC either way.
    return table.set_column(table.column_names.index("hour"), "hour", table["hour"].cast(INSTANT, safe=False))


def _airports(ledger: Ledger) -> Table:
    table = Table("airport", title="Flights", title_justify="left", show_footer=True)
    table.columns[0].footer = "all"
    words = {"accepted": "counted", "LATE": "late", "NULL_ROWTIME": "cancelled", "in": "flights"}
    for word, title in words.items():
        table.add_column(title, justify="right", footer=f"{_total(ledger, word):,}")
    for airport in AIRPORTS:
        table.add_row(airport, *(f"{ledger[gate(airport)].get(word, 0):,}" for word in words))
    return table


def _ranking(title: str, column: str, counted: pa.Table, size: int = 5) -> Table:
    sums: Counter[Any] = Counter()
    for key, departures in zip(counted[column].to_pylist(), counted["departures"].to_pylist(), strict=True):
        sums[key] += departures
    table = Table(column, title=title, title_justify="left")
    table.add_column("departures", justify="right")
    for key, departures in sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:size]:
        table.add_row(f"{key:%a %d %b %Y %H:00}" if column == "hour" else key, f"{departures:,}")
    return table


def _sentences(places: Places, outcome: Outcome, counted: pa.Table) -> Iterator[str]:
    accepted, written = _total(outcome.ledger, "accepted"), pc.sum(counted["departures"]).as_py()
    refused = _accounted(outcome.ledger) - accepted
    output, checkpoint = _shown(places.output), _shown(places.checkpoint)
    yield f"Accepted {accepted:,} + refused {refused:,} = {accepted + refused:,} of {FLIGHTS:,} flights."
    yield f"The output counts {written:,} departures in {counted.num_rows:,} rows."
    yield ""
    yield f"Output          {output}"
    for folder in sorted({_shown(path.parent) for paths in outcome.rejected.values() for path in paths}):
        yield f"Refused rows    {folder}"
    yield f"Read it         spark.read.parquet('{output}')"
    yield f"Where it stands rowtime status {checkpoint}"


def _total(ledger: Ledger, word: str) -> int:
    return sum(counts.get(word, 0) for counts in ledger.values())


def _accounted(ledger: Ledger) -> int:
    """Accepted rows and those refused, whatever the reason."""
    return sum(rows for counts in ledger.values() for word, rows in counts.items() if word != "in")


def _hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)


def _shown(path: Path) -> Path:
    whole = path.absolute()
    return whole.relative_to(Path.cwd()) if whole.is_relative_to(Path.cwd()) else whole


class _Feeding:
    """A bar for each stream's feed; on a terminal only."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(
            *columns, TextColumn("{task.fields[note]}"), console=console, disable=not console.is_terminal
        )
        self._bars: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def fed(self, stream: str, done: int, total: int) -> None:
        self._progress.update(self._bar(f"feed {stream}", total), completed=done)

    def _bar(self, name: str, total: int) -> TaskID:
        if name not in self._bars:
            self._bars[name] = self._progress.add_task(name, total=total, note="")
        return self._bars[name]


def _places(arguments: Sequence[str] | None) -> Places:
    parser = argparse.ArgumentParser(prog="python -m examples.flights", description=(__doc__ or "").split("\n")[0])
    under = Path("out/flights")
    parser.add_argument("--home", type=Path, default=under / "home", help="the streams [%(default)s]")
    parser.add_argument("--checkpoint", type=Path, default=under / "checkpoint", help="[%(default)s]")
    parser.add_argument("--output", type=Path, default=under / "hourly", help="Parquet files [%(default)s]")
    return Places(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
