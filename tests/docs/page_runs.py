"""The rows that the examples of a page give, what its Python prints, and how it is refused, from a run of rowtime.

The blocks ``sql`` of a page and its ``sql input`` (the rows of its streams) are one script, which runs as it is written
in an empty folder. A block ``csv PATH`` or ``json PATH`` is a file there, or the rows of the table with that path or
name; ``json topic NAME [PARTITION]`` and ``json subject NAME`` are records and schemas of `page_servers`. After a block
come the rows of its queries, views and pumps (``text rows``), or the message that refuses it (``text refused``). The
blocks ``python`` of a page run in order, as one program; after each comes what it prints (``text output``).

In some pages (`EACH`) every block ``sql`` is a script of its own, with the input that follows it.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, chdir, redirect_stdout
from dataclasses import dataclass, field, replace
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
from pyiceberg.catalog import Catalog, load_catalog

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
from tests.docs.page_blocks import ROOT, Block, bare, blocks_of, fence, wrapped, written
from tests.docs.page_servers import Prepared, Servers
from tests.docs.page_tables import Row, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.sinks.contract import Batch
    from rowtime.state.checkpoint import Checkpoint

EACH: Final = frozenset(
    ("README.md", *(f"docs/{name}.md" for name in ("debezium", "howto/cookbook", "kafka", "lakes", "schema-registry")))
)
"""The pages of which every block of SQL is a script of its own."""
ARRIVAL: Final = "2024-01-01 12:00:00"
"""When all rows arrive, and when each tick is committed."""
SILENT: Final[Mapping[str, Sequence[str]]] = {
    "docs/sql.md": ("SELECT STREAM customer, reason FROM complaints FROM NOW;",),
}
"""What gives no rows on a page, although it could: the page says why."""
LONGEST: Final = 130  # characters of a line, which a browser still shows without a scroll bar
VARIABLES: Final = {"registry_password": "of the example"}

STORAGE: Final = {"allow_http": "true", "conditional_put": "etag"}
_SESSION: Final = "SparkSession.builder.getOrCreate()"
_ALL: Final = "SELECT STREAM * FROM"


@dataclass(frozen=True)
class Shown:
    """A statement with rows to show: in which block it is, its name, if it has one, and the sink of its rows."""

    block: int
    name: str
    sink: str


def outputs_of(
    spark: SparkSession, name: str, page: str, servers: Servers | None = None
) -> tuple[dict[int, str], list[str]]:
    """Run the examples of a page; return what to show after which block, and what gave no rows."""
    blocks = dict(enumerate(blocks_of(bare(page))))
    outputs, silent, servers = dict[int, str](), list[str](), servers or Servers()
    for part in parts_of(blocks, each=name in EACH):
        if any(block.kind in ("sql", "sql input") for block in part.values()):
            with servers.emptied().prepared([*part.values()], ARRIVAL) as prepared:
                run = _PageRun(part, prepared)
                rows = run.tables(spark)
            outputs |= {number: fence("rows", text) for number, text in rows.items()} | run.refusals()
            silent += run.silent
    return outputs | printed_by(spark, blocks, servers.emptied()), silent


def parts_of(blocks: Mapping[int, Block], *, each: bool) -> list[dict[int, Block]]:
    """Return the blocks of each script of a page; with ``each``, one begins at every block of SQL or Python."""
    if not each:
        return [dict(blocks)]
    parts = list[dict[int, Block]]()
    for number, block in blocks.items():
        if block.kind in ("sql", "python"):
            parts.append({})
        if parts:
            parts[-1][number] = block
    return parts


def printed_by(spark: SparkSession, blocks: Mapping[int, Block], servers: Servers) -> dict[int, str]:
    """Run the blocks of Python in an empty folder; return what they print."""
    names, outputs = dict[str, Any](), dict[int, str]()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for part in parts_of(blocks, each=True):
            [(number, block), *_] = part.items()
            if block.kind == "python":
                names["mine"] = spark.newSession()
                with servers.prepared([*part.values()], ARRIVAL) as prepared:
                    text = prepared.addressed(block.text).replace(_SESSION, "mine")
                    code = compile(text, f"block {number}", "exec")
                    with redirect_stdout(StringIO()) as printed:
                        exec(code, names)  # noqa: S102 - this is what the page tells users to run
                if lines := [line.rstrip() for line in printed.getvalue().splitlines()]:
                    outputs[number] = fence("output", "\n".join(lines))
    return outputs


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
    prepared: Prepared
    silent: list[str] = field(default_factory=list)
    begins: dict[int, int] = field(default_factory=dict)
    script: str = ""
    written: dict[str, Mapping[str, str]] = field(default_factory=dict)

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
                    for problem in compile_script(self.script + block.text, variables=VARIABLES).problems
                ]
                messages[number] = fence("refused", "\n\n".join(wrapped(str(problem)) for problem in problems))
        return messages

    def tables(self, spark: SparkSession) -> dict[int, str]:
        """Return the rows of each block, as text."""
        script, shown = self._with_views()
        with tempfile.TemporaryDirectory() as folder, chdir(folder), _fixed():
            session = spark.newSession()
            Path("data").mkdir()
            self._make_files(Path(folder), session)
            pipeline = _Collecting(session).sql(self._placed(script, Path(folder)), VARIABLES)
            assert isinstance(pipeline, _Collecting)
            pipeline.run_available("checkpoint", end=True)
            rows = {**pipeline.rows, **{name: self._read(of, Path(folder)) for name, of in self.written.items()}}
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
        options = {one.name.text: dict(one.options) for one in streams if one.using in (*LAKES, "kafka")}
        self.written = {name: of for name, of in options.items() if "path" in of or "table" in of or "topic" in of}
        selects = dict[str, str]()
        for statement in statements:
            block = max(number for number, line in self.begins.items() if line < statement.place.line)
            match statement:
                case sql.Query():
                    queries.append(block)
                case sql.CreateView() if re.search(r"\bSELECT\s+STREAM\b", statement.text):  # not of tables
                    named.append((block, statement.name.text))
                case sql.CreatePump() if statement.target.text in self.written:
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
        for problem in compile_script(f"{self.script}{_lines(selects)}", variables=VARIABLES).problems:
            if problem.place is None or problem.place.line <= begins:
                raise rt.Refused(problem)
            refused.append(names[problem.place.line - begins - 1])
        return refused

    def _placed(self, text: str, folder: Path) -> str:
        """Return a script, or the value of an option, with paths below ``/data`` in a folder, and real addresses."""
        return re.sub(r"(?<![\w}])/data/", f"{folder}/data/", self.prepared.addressed(text))

    def _read(self, options: Mapping[str, str], folder: Path) -> list[Row]:
        """Return the rows that a reader of a topic finds, or of a lake table, sorted."""
        given = {name: self._placed(value, folder) for name, value in options.items()}
        if "topic" in given:
            return self.prepared.received(given)
        if "catalog" in given:
            rows = _catalog(given).load_table(given["table"]).scan().to_arrow()
        else:
            rows = DeltaTable(given["path"], storage_options=STORAGE).to_pyarrow_table()
        return sorted(plain_rows(rows), key=lambda row: str(list(row.values())))

    def _make_table(self, table: sql.CreateTable | sql.CreateStream, rows: pyarrow.Table, folder: Path) -> None:
        """Make the lake table that an example reads."""
        options = {name: self._placed(value, folder) for name, value in table.options}
        if table.using == "delta":
            write_deltalake(options["path"], rows, storage_options=STORAGE)
            return
        catalog = _catalog(options)
        catalog.create_namespace(options["table"].partition(".")[0])
        catalog.create_table(options["table"], rows.schema).append(rows)

    def _make_files(self, folder: Path, session: SparkSession) -> None:
        kinds = sql.CreateTable | sql.CreateStream
        definitions = [one for one in parse_script(self.script).statements if isinstance(one, kinds)]
        tables = {_key_of(dict(one.options)) or one.name.text: one for one in definitions}
        for block in self.blocks.values():
            if block.kind.startswith(("csv ", "json ")) and not block.kind.startswith(("json topic", "json subject")):
                path = block.kind.partition(" ")[2]
                file, given = folder / path.lstrip("/"), tables.get(path)
                if given is not None and given.using in LAKES:
                    self._make_table(given, _rows_of(given, block), folder)
                    continue
                file.parent.mkdir(parents=True, exist_ok=True)
                if given is None or given.using == "csv":
                    file.write_text(block.text, encoding="utf-8")
                    os.utime(file, ns=(to_micros(ARRIVAL) * 1000,) * 2)
                elif given.using == "session":
                    session.createDataFrame(_rows_of(given, block)).createOrReplaceTempView(given.name.text)
                else:
                    file.mkdir()
                    pq.write_table(_rows_of(given, block), file / "1.parquet")


def _key_of(options: Mapping[str, str]) -> str | None:
    return options.get("path") or options.get("table")


def _catalog(options: Mapping[str, str]) -> Catalog:
    store = {"s3.endpoint": os.environ["AWS_ENDPOINT_URL"]} if "AWS_ENDPOINT_URL" in os.environ else {}
    settings = {name.removeprefix("catalog."): value for name, value in options.items() if name.startswith("catalog.")}
    return load_catalog(options["catalog"], **store, **settings)


def _rows_of(table: sql.CreateTable | sql.CreateStream, block: Block) -> pyarrow.Table:
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


def _fixed() -> ExitStack:
    """Stop the clock that says when rows arrive and ticks are committed, and name the writer of the script."""
    stack = ExitStack()
    arrival = SimpleNamespace(time_ns=lambda: to_micros(ARRIVAL) * 1000)
    stack.enter_context(patch("rowtime.core.time.time", arrival))
    name = SimpleNamespace(uuid4=lambda: UUID(int=0x9A1FBBA4A2C8 << 80))
    stack.enter_context(patch("rowtime.runtime.first_start.uuid", name))
    return stack


def page_is_current(spark: SparkSession, name: str, *, rewrite: bool, servers: Servers | None = None) -> None:
    """Check that a page shows what its examples give, or write that into it."""
    path = ROOT / name
    page = path.read_text(encoding="utf-8")
    made, silent = outputs_of(spark, name, page, servers)
    if rewrite:
        page = written(page, made)
        path.write_text(page, encoding="utf-8")
    assert silent == list(SILENT.get(name, ())), "these examples give no rows"
    assert written(page, made) == page, "run make outputs"
    long = [line for text in made.values() for line in text.splitlines() if len(line) > LONGEST]
    assert long == []
    changed = _with_another_digit(page)
    assert written(changed, made) != changed, "a changed row is not noticed"


def _with_another_digit(page: str) -> str:
    """Return the page with another digit in its first table or output."""
    found = re.search(r"^```text (?:rows|output)\n(?:.*\n)*?```$", page, re.MULTILINE)
    assert found is not None
    place = max(place for place in range(*found.span()) if page[place].isdigit())
    return f"{page[:place]}{(int(page[place]) + 1) % 10}{page[place + 1 :]}"
