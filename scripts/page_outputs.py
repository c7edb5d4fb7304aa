"""Write the rows that the examples of a page give into the page, from a run of rowtime, or check that they are there.

The blocks ``sql`` of a page and its ``sql input`` (the rows of its streams) are one script, which runs as it is written
in an empty folder. A block ``csv PATH`` or ``json PATH`` is a file there, or the rows of the table with that path or
name. After a block come the rows of its queries, views and pumps (``text rows``), or the message that refuses it
(``text refused``). The blocks ``python`` of a page run in order, as one program; after each comes what it prints
(``text output``).

In a page with blocks ``sql input above``, each of these and the block ``sql`` above it are a script of their own.
Nothing else of that page runs: the rest needs a server.

    python scripts/page_outputs.py [PAGE …]    # write them (make outputs)
    python scripts/page_outputs.py --check     # say which pages are out of date
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, redirect_stdout
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch
from uuid import UUID

import pyarrow.csv
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog

import rowtime as rt
from rowtime.core.time import to_micros
from rowtime.frames.kinds import arrow_of, without_zones
from rowtime.plan.formats.lake import LAKES
from rowtime.plan.program import Program, compile_script
from rowtime.runtime.plain_rows import plain_rows
from rowtime.runtime.sinks.callables import FunctionSink
from rowtime.runtime.sinks.staging import Stage
from rowtime.sql import statements as sql
from rowtime.sql.script import parse_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.sinks.contract import Batch
    from rowtime.state.checkpoint import Checkpoint

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = tuple(
    f"docs/{name}.md"
    for name in (
        "sql", "windows", "panes", "nested", "match_recognize", "lifetimes", "from-sqlstream",
        "from-streams-and-streaminsight", "functions", "guide", "python", "lakes", "kafka",
    )
)  # fmt: skip
ARRIVAL: Final = "2024-01-01 12:00:00"
"""When all rows arrive, and when each tick is committed."""
MOST, WIDTH, NESTED = 10, 100, 60  # rows of a table, characters of a line, and of a nested value
SILENT: Final[Mapping[str, Sequence[str]]] = {
    "docs/sql.md": ("SELECT STREAM customer, reason FROM complaints FROM NOW;",),
}
"""What gives no rows on a page, although it could: the page says why."""

Row = Mapping[str, Any]
_SESSION: Final = "SparkSession.builder.getOrCreate()"
_ABOVE: Final = "sql input above"
_ALL: Final = "SELECT STREAM * FROM"
_FENCED: Final = re.compile(r"^```(.*)\n((?:.*\n)*?)```\n", re.MULTILINE)
_MADE: Final = re.compile(r"^\n```text (?:rows|refused|output)\n(?:.*\n)*?```\n", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: the words after the fence, its text, and where it ends in the page."""

    kind: str
    text: str
    end: int


@dataclass(frozen=True)
class Shown:
    """A statement with rows to show: in which block it is, its name, if it has one, and the sink of its rows."""

    block: int
    name: str
    sink: str


def bare(page: str) -> str:
    """Return a page without what this script writes."""
    return _MADE.sub("", page)


def blocks_of(page: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    return [Block(match[1], match[2], match.end()) for match in _FENCED.finditer(page)]


def written(page: str, outputs: Mapping[int, str]) -> str:
    """Return a page with these outputs; each comes after the block of that number."""
    page = bare(page)
    ends = [block.end for block in blocks_of(page)]
    for number in sorted(outputs, reverse=True):
        page = f"{page[: ends[number]]}\n{outputs[number]}{page[ends[number] :]}"
    return page


def outputs_of(spark: SparkSession, page: str) -> tuple[dict[int, str], list[str]]:
    """Run the examples of a page; return what to show after which block, and what gave no rows."""
    blocks = dict(enumerate(blocks_of(bare(page))))
    outputs, silent = dict[int, str](), list[str]()
    for part in _scripts(blocks):
        run = _PageRun(part)
        rows = run.tables(spark)
        outputs |= {number: _fence("rows", text) for number, text in rows.items()} | run.refusals()
        silent += run.silent
    alone = any(block.kind == _ABOVE for block in blocks.values())
    return outputs | ({} if alone else printed_by(spark, blocks)), silent


def _scripts(blocks: Mapping[int, Block]) -> list[dict[int, Block]]:
    """Return the blocks of each script of a page."""
    kinds = {block.kind for block in blocks.values()}
    if _ABOVE not in kinds:
        return [dict(blocks)] if kinds & {"sql", "sql input"} else []
    parts = list[dict[int, Block]]()
    for number, block in blocks.items():
        if block.kind == "sql":
            parts.append({})
        if parts:
            parts[-1][number] = replace(block, kind=block.kind.removesuffix(" above"))
    return [part for part in parts if any(block.kind == "sql input" for block in part.values())]


def printed_by(spark: SparkSession, blocks: Mapping[int, Block]) -> dict[int, str]:
    """Run the blocks of Python in an empty folder; return what they print."""
    names, outputs = dict[str, Any](), dict[int, str]()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for number, block in blocks.items():
            if block.kind == "python":
                names["mine"] = spark.newSession()
                code = compile(block.text.replace(_SESSION, "mine"), f"block {number}", "exec")
                with redirect_stdout(StringIO()) as printed:
                    exec(code, names)  # noqa: S102 - this is what the page tells users to run
                if lines := [line.rstrip() for line in printed.getvalue().splitlines()]:
                    outputs[number] = _fence("output", "\n".join(lines))
    return outputs


def _fence(kind: str, text: str) -> str:
    return f"```text {kind}\n{text}\n```\n"


# -- a run ------------------------------------------------------------------------------


class _Collecting(rt.Pipeline):
    """A pipeline that keeps the rows of its queries, by the names of their sinks."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark, home=".rowtime")
        self.rows = defaultdict[str, list[Row]](list)

    def stages(self, program: Program, place: Checkpoint) -> dict[str, Stage]:
        stages = super().stages(program, place)
        for node in program.sinks:
            if node.format == "console":
                stages[node.name] = Stage(FunctionSink(partial(self._take, node.name), node.name), place.folder)
        return stages

    def _take(self, sink: str, batch: Batch) -> None:
        if batch.count:
            self.rows[sink].extend(plain_rows(batch.table()))


@dataclass
class _PageRun:
    """The script of a page, and what its statements give. ``begins``: the first line of each block in the script."""

    blocks: Mapping[int, Block]
    silent: list[str] = field(default_factory=list)
    begins: dict[int, int] = field(default_factory=dict)
    script: str = ""
    lakes: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parts = [one for one in self.blocks.items() if one[1].kind in ("sql", "sql input")]
        for number, block in sorted(parts, key=lambda one: one[1].kind):  # the input comes last
            self.begins[number] = self.script.count("\n")
            self.script += block.text if block.text.rstrip().endswith(";") else f"{block.text};\n"

    def refusals(self) -> dict[int, str]:
        """Return the messages of the blocks that are refused."""
        messages = {}
        for number, block in self.blocks.items():
            if block.kind.startswith("sql refused"):
                begins = self.script.count("\n")
                problems = [
                    replace(problem, place=problem.place and replace(problem.place, line=problem.place.line - begins))
                    for problem in compile_script(self.script + block.text).problems
                ]
                messages[number] = _fence("refused", "\n\n".join(_wrapped(str(problem)) for problem in problems))
        return messages

    def tables(self, spark: SparkSession) -> dict[int, str]:
        """Return the rows of each block, as text."""
        script, shown = self._with_views()
        with tempfile.TemporaryDirectory() as folder, chdir(folder), _fixed():
            session = spark.newSession()
            Path("data").mkdir()
            self._make_files(Path(folder), session)
            pipeline = _Collecting(session).sql(_in_folder(script, Path(folder)))
            assert isinstance(pipeline, _Collecting)
            pipeline.run_available("checkpoint", end=True)
            rows = {**pipeline.rows, **{name: _lake_rows(of, Path(folder)) for name, of in self.lakes.items()}}
        by_block = defaultdict[int, list[Shown]](list)
        for one in shown:
            by_block[one.block].append(one)
            if not rows.get(one.sink):
                self.silent.append(one.name or self.blocks[one.block].text.strip().splitlines()[0])
        return {
            number: "\n\n".join(
                f"{one.name}\n" * (one.name != "" and len(those) > 1) + table(rows.get(one.sink, [])) for one in those
            )
            for number, those in by_block.items()
        }

    def _with_views(self) -> tuple[str, list[Shown]]:
        """Return the script with a query for each view and each target of a pump, and what to show."""
        queries, named, tables = list[int](), list[tuple[int, str]](), dict[str, int]()
        statements = parse_script(self.script).statements
        streams = [one for one in statements if isinstance(one, sql.CreateStream)]
        unread = {one.name.text for one in streams if one.shape or one.using}
        self.lakes = {one.name.text: dict(one.options) for one in streams if one.using in LAKES}
        selects = dict[str, str]()
        for statement in statements:
            block = max(number for number, line in self.begins.items() if line < statement.place.line)
            match statement:
                case sql.Query():
                    queries.append(block)
                case sql.CreateView() if re.search(r"\bSELECT\s+STREAM\b", statement.text):  # not of tables
                    named.append((block, statement.name.text))
                case sql.CreatePump() if statement.target.text in self.lakes:
                    tables[statement.target.text] = block
                case sql.CreatePump() if statement.target.text in unread:  # not in the script that fills it
                    named.append((block, statement.target.text))
                    selects[statement.target.text] = _query_of(statement)
                case sql.CreatePump():
                    named.append((block, statement.target.text))
                case sql.CreateStream() if statement.query is not None:
                    named.append((block, statement.name.text))
        selects = {name: f"{_ALL} {name} EMIT INTERVALS (start, stop)" for _, name in named} | selects
        for fewer in ({name: f"{_ALL} {name}" for _, name in named}, {}):
            for name in self._refused(selects):
                selects[name] = fewer.get(name, "")
        selects = {name: query for name, query in selects.items() if query}
        alone = len(queries) + len(selects) == 1
        sinks = ["query.result" if alone else f"query{n}.result" for n in range(1, len(queries) + len(selects) + 1)]
        of_names = dict(zip(selects, sinks[len(queries) :], strict=True))
        views = [Shown(block, name, of_names[name]) for block, name in named if name in selects]
        views += [Shown(block, name, name) for name, block in tables.items()]
        shown = [Shown(block, "", sink) for block, sink in zip(queries, sinks, strict=False)]
        ordered = sorted([*shown, *views], key=lambda one: (one.block, not one.name))
        return f"{self.script}{_lines(selects)}", ordered

    def _refused(self, selects: Mapping[str, str]) -> list[str]:
        """Return the names whose query is refused."""
        begins, names = self.script.count("\n"), list(selects)
        refused = []
        for problem in compile_script(f"{self.script}{_lines(selects)}").problems:
            if problem.place is None or problem.place.line <= begins:
                raise rt.Refused(problem)
            refused.append(names[problem.place.line - begins - 1])
        return refused

    def _make_files(self, folder: Path, session: SparkSession) -> None:
        kinds = sql.CreateTable | sql.CreateStream
        definitions = [one for one in parse_script(self.script).statements if isinstance(one, kinds)]
        tables = {dict(one.options).get("path", one.name.text): one for one in definitions}
        for block in self.blocks.values():
            if block.kind.startswith(("csv ", "json ")):
                path = block.kind.partition(" ")[2]
                file, given = folder / path.lstrip("/"), tables.get(path)
                file.parent.mkdir(parents=True, exist_ok=True)
                if given is None or given.using == "csv":
                    file.write_text(block.text, encoding="utf-8")
                    os.utime(file, ns=(to_micros(ARRIVAL) * 1000,) * 2)
                elif given.using == "session":
                    session.createDataFrame(_read(given, block)).createOrReplaceTempView(given.name.text)
                elif given.using == "delta":
                    write_deltalake(file, _read(given, block))
                else:
                    file.mkdir()
                    pq.write_table(_read(given, block), file / "1.parquet")


def _read(table: sql.CreateTable | sql.CreateStream, block: Block) -> pyarrow.Table:
    """Return the rows of a table that a block lists."""
    types = pyarrow.schema([(column.name, arrow_of(column.type)) for column in table.columns])
    without = {one.name: without_zones(one.type) for one in types}
    options = pyarrow.csv.ConvertOptions(column_types=without, strings_can_be_null=True)
    return pyarrow.csv.read_csv(BytesIO(block.text.encode()), convert_options=options).cast(types)


def _query_of(pump: sql.CreatePump) -> str:
    """Return the query of a pump, on one line."""
    return " ".join(re.sub(r"^.*?\bINSERT\s+INTO\s+\S+\s+(?=SELECT|WITH)", "", pump.text, flags=re.DOTALL).split())


def _lines(selects: Mapping[str, str]) -> str:
    return "".join(f"{query};\n" for query in selects.values())


def _in_folder(text: str, folder: Path) -> str:
    """Return a script, or the value of an option, with paths below ``/data`` in a folder."""
    return re.sub(r"(?<![\w}])/data/", f"{folder}/data/", text)


def _lake_rows(options: Mapping[str, str], folder: Path) -> list[Row]:
    """Return the rows that a reader of a lake table finds, sorted."""
    given = {name: _in_folder(value, folder) for name, value in options.items()}
    if "catalog" in given:
        of_catalog = {
            name.removeprefix("catalog."): value for name, value in given.items() if name.startswith("catalog.")
        }
        rows = load_catalog(given["catalog"], **of_catalog).load_table(given["table"]).scan().to_arrow()
    else:
        rows = DeltaTable(given["path"]).to_pyarrow_table()
    return sorted(plain_rows(rows), key=lambda row: str(list(row.values())))


def _fixed() -> ExitStack:
    """Stop the clock that says when rows arrive and ticks are committed, and name the writer of the script."""
    stack = ExitStack()
    arrival = SimpleNamespace(time_ns=lambda: to_micros(ARRIVAL) * 1000)
    stack.enter_context(patch("rowtime.core.time.time", arrival))
    name = SimpleNamespace(uuid4=lambda: UUID(int=0x9A1FBBA4A2C8 << 80))
    stack.enter_context(patch("rowtime.runtime.acting_statements.uuid", name))
    return stack


def _wrapped(message: str) -> str:
    """Return a message with lines of a readable length; the line of SQL and its mark stay."""
    return "\n".join(
        line if re.match(r" *\d* *\| ", line) else textwrap.fill(line, WIDTH, break_long_words=False)
        for line in message.splitlines()
    )


# -- a table ----------------------------------------------------------------------------


def table(rows: Sequence[Row]) -> str:
    """Return rows as a table: the names, and a line a row."""
    if not rows:
        return "(no rows)"
    most = MOST if len(rows) > MOST + 1 else len(rows)
    cells = [list(rows[0]), *([_short(value) for value in row.values()] for row in rows[:most])]
    widths = [max(len(line[place]) for line in cells) for place in range(len(cells[0]))]
    right = [isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in _filled(rows)]
    lines = [
        "  ".join(
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in cells
    ]
    return "\n".join([*lines, *([f"… {len(rows) - most} more rows"] if len(rows) > most else [])])


def _filled(rows: Sequence[Row]) -> Iterator[Any]:
    """Return the first value of each column that is not NULL."""
    for name in rows[0]:
        yield next((row[name] for row in rows if row[name] is not None), None)


def _short(value: Any) -> str:
    """Return a value as text; a long one that is nested is cut."""
    text = cell(value)
    return f"{text[:NESTED]}…" if isinstance(value, dict | list) and len(text) > NESTED else text


def cell(value: Any) -> str:
    """Return a value as text."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case datetime():
            return str(value.replace(tzinfo=None))
        case dict():
            return "{" + ", ".join(f"{name}: {cell(one)}" for name, one in value.items()) + "}"
        case list():
            return "[" + ", ".join(cell(one) for one in value) + "]"
    return str(value)


def main(arguments: list[str]) -> int:
    """Write the pages, or check them. Return 1 if a page is out of date, or an example gives no rows."""
    from rowtime.runtime.session import derive, new_spark  # noqa: PLC0415 - only a run needs Spark

    spark, wrong = derive(new_spark()), 0
    for name in [one for one in arguments if one != "--check"] or PAGES:
        path = ROOT / name
        old = path.read_text(encoding="utf-8")
        outputs, silent = outputs_of(spark, old)
        for one in [one for one in silent if one not in SILENT.get(name, ())]:
            print(f"{name}: no rows: {one}")
            wrong = 1
        new = written(old, outputs)
        for line in [line for line in new.splitlines() if len(line) > WIDTH + 20 and line not in old.splitlines()]:
            print(f"{name}: a long line: {line}")
        if new == old:
            continue
        if "--check" in arguments:
            print(f"{name} is out of date: run make outputs.")
            wrong = 1
        else:
            path.write_text(new, encoding="utf-8")
            print(f"wrote {name}")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
