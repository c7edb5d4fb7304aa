"""``rowtime insert``: rows of a file, or of standard input, into an embedded stream."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from rowtime.cli.options import AsJson, HomeFolder, StreamName
from rowtime.cli.outcome import write_json
from rowtime.cli.row_files import FORMATS, Chunk, chunks_of
from rowtime.client.forecast import Forecast
from rowtime.client.home import Home
from rowtime.client.writer import Writer, open_writer
from rowtime.core.errors import Refused
from rowtime.core.time import to_text

RowFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="Rows as CSV, JSON lines or Parquet; - is standard input.")
]
Format = Annotated[
    str | None, typer.Option("--format", metavar="FORMAT", help="csv, json or parquet; default: from the file name.")
]
WriterName = Annotated[str | None, typer.Option("--writer", metavar="NAME", help="The writer; default: main.")]
Rowtime = Annotated[
    str | None, typer.Option("--rowtime", metavar="COLUMN", help="The column that gives the rowtime; default: rowtime.")
]


def insert(
    stream: StreamName,
    file: RowFile,
    format_: Format = None,
    writer: WriterName = None,
    rowtime: Rowtime = None,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Insert the rows of a file into a stream."""
    kind = _format(file, format_)
    place = Home(home)
    with open_writer(stream, home=place, writer=writer) as opened:
        assert opened.schema is not None
        seen = Forecast(opened.log, opened.name, place.definition(stream) or {})
        rows = _insert(opened, chunks_of(file, kind, opened.schema), str(file), rowtime, seen)
        clock = to_text(seen.clock)
        if as_json:
            result = {"stream": stream, "writer": opened.name, "rows": rows, "clock": clock}
            write_json({**result, "will_be_refused": seen.refused})
        else:
            typer.echo(f"{rows:,} row{'' if rows == 1 else 's'} into {stream} (writer {opened.name}); clock {clock}")
            _warn(seen, rows, stream)


def _warn(seen: Forecast, rows: int, stream: str) -> None:
    """Report how many of the rows a pipeline will refuse."""
    if not seen.refused:
        return
    many = f"all {rows:,}" if seen.refused == rows else f"{seen.refused:,} of them"
    why = f"{stream} has ended for this writer" if seen.ended else "they are below the clock of the writer"
    typer.echo(f"warning: the stream will refuse {many} (OUT_OF_ORDER or LATE): {why}", err=True)


def _format(file: Path, given: str | None) -> str:
    kind = given or ("json" if str(file) == "-" else FORMATS.get(file.suffix.lower()))
    if kind is None or kind not in FORMATS.values():
        endings = ", ".join(FORMATS)
        what = f"the format of {file} is none of csv, json, parquet ({endings})"
        raise typer.BadParameter(what, param_hint="--format")
    if str(file) != "-" and not file.is_file():
        raise typer.BadParameter(f"there is no file {file}", param_hint="FILE")
    if str(file) == "-" and kind != "json":
        raise typer.BadParameter("standard input is read as JSON lines", param_hint="--format")
    return kind


def _insert(writer: Writer, chunks: Iterable[Chunk], source: str, rowtime: str | None, seen: Forecast) -> int:
    """Write chunk by chunk; a refusal says how many earlier rows are in the stream."""
    done = 0
    try:
        for chunk in chunks:
            writer.insert(chunk, rowtime)
            done += len(chunk)
            if len(chunk):
                seen.take_last()
    except Refused as refused:
        raise _after(refused, done, source) from None
    return done


def _after(refused: Refused, done: int, source: str) -> Refused:
    if not done:
        return refused
    note = f"The {done:,} rows of {source} before these are in the stream; the row numbers here count from there."
    return Refused(*(replace(problem, hint=f"{problem.hint} {note}".strip()) for problem in refused.problems))
