"""The way out if a target will never accept committed rows: they are set aside, and the journal records it.

Rows are checked before the commit as far as possible. Rows that a target still refuses afterwards would stop every
start. ``rowtime skip`` puts the rows of that tick into ``rejected`` of the pump with the reason ``SKIPPED``, in an
entry of the journal; the numbers of later rows continue after theirs.
"""

from __future__ import annotations

import shlex
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from rowtime.client.home import Home
from rowtime.client.stream_log import entries_of
from rowtime.core.errors import RowtimeError, refuse
from rowtime.core.partition_folders import inside, values_of
from rowtime.core.stores import ObjectPlace, Place, on_store, place_of
from rowtime.operators.gates.rejected import shown_as
from rowtime.operators.sinks.sink import Sink as SinkNode
from rowtime.plan.bind.sink_options import partitions_of
from rowtime.plan.formats.lake import LAKES
from rowtime.plan.stored import Fields
from rowtime.runtime.claims import log_of, pump_of
from rowtime.runtime.file_form import lines_of
from rowtime.runtime.lake_targets import lake_targets
from rowtime.runtime.segment_writer import write_table
from rowtime.runtime.sinks.directory import moved_name
from rowtime.runtime.sinks.lake_rows import app_of
from rowtime.runtime.sinks.staging import TEXT_FORMATS
from rowtime.runtime.sinks.stream_log import count_of, writer_of
from rowtime.state import refused_files
from rowtime.state.checkpoint import Checkpoint, folder_of
from rowtime.state.files import arrived
from rowtime.state.memory import read_table

REASON: Final = "SKIPPED"
_NOT_OFFERED: Final = frozenset(
    {"R204", "R403", "R406", "R441", "R442", "R511", "R561", "R564", "R565", "R568", "R582", "R583"}
)  # the rows are not the reason
_DEEP: Final = 3  # folders from a staged file up to its table's
_TIME: Final = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Skipped:
    """How many rows of a tick were set aside, and the file of ``rejected`` that has them."""

    pump: str
    tick: int
    rows: int
    file: Place


@contextmanager
def offering(checkpoint: Place, node: SinkNode, tick: int, staged: Mapping[str, Any]) -> Iterator[None]:
    """Add the way out to any error that prevents a sink from accepting its rows."""
    try:
        yield
    except Exception as error:
        if not staged["count"]:
            raise
        command = f"rowtime skip {shlex.quote(str(checkpoint))} {shlex.quote(pump_of(node.name))} {tick}"
        words = f"If the target will never take these {staged['count']} rows, set them aside: {command}"
        if not isinstance(error, RowtimeError):
            error.add_note(words)
            raise
        if any(problem.code in _NOT_OFFERED for problem in error.problems):
            raise
        *others, last = error.problems
        raise type(error)(*others, replace(last, hint=f"{last.hint}\n{words}".strip())) from error


def skip(
    checkpoint: str | Path | ObjectPlace,
    pump: str,
    tick: int,
    *,
    home: Home | str | Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> Skipped:
    """Set aside the rows of a tick that a pump has not delivered; the next start continues without them.

    The pipeline must not be running. ``home`` is asked where the target is a stream log. ``variables``: the secrets
    of its script, if the target is a table whose catalog needs them. Raises ``Refused``: R404 if it runs, R445 if no
    such rows wait.
    """
    place = Checkpoint(place_of(checkpoint))
    if place.plan is None:
        raise refuse("R405", f"{checkpoint} has no tick", "Give the checkpoint folder of a pipeline that has run.")
    place.acquire()
    try:
        place.check()
        given = _Given(home if isinstance(home, Home) else Home(home), variables or {})
        return _skipped(place, pump, tick, given)
    finally:
        place.release()


class _Given(NamedTuple):
    """Settings that the checkpoint does not store, for access to the target."""

    home: Home
    variables: Mapping[str, str]


def _skipped(place: Checkpoint, pump: str, tick: int, given: _Given) -> Skipped:
    entry = place.journal.last() or {}
    pending = _pending(place, entry)
    name = next((name for name, waiting in pending.items() if pump_of(name) == pump and waiting == tick), "")
    assert place.plan is not None
    plan = place.plan.operators[name].fields if name in place.plan.operators else {}
    files = _waiting(place, entry, name, plan, given) if plan else []
    if not files:
        listed = ", ".join(f"tick {at} of {pump_of(sink)}" for sink, at in pending.items()) or "none"
        what = f"no rows of tick {tick} of the pump {pump} wait for delivery"
        raise refuse("R445", what, f"Waiting for delivery: {listed}.")
    place.show_refused(entry)  # before the entry that names its own
    rows = [_rejected(file, number, many, pump, plan) for file, number, many in files]
    number, table = entry["tick"] + 1, pa.concat_tables(rows, promote_options="permissive")
    stem = f"state/{folder_of(pump)}/{number:012d}-{uuid.uuid4().hex[:6]}"
    segment = write_table(table, place.folder, stem, REASON.lower(), None)
    arrived(place.folder)
    split = partitions_of(plan["format"], plan["options"])
    parts = [{"first": at, "count": many, "file": inside(file, len(split))} for file, at, many in files]
    skipped = {"sink": name, "pump": pump, "tick": tick, "parts": parts}
    place.journal.commit(number, _after(entry, skipped, segment.path))
    place.show_refused(place.journal.last() or {})
    arrived(place.folder)
    for file, *_ in files:
        if isinstance(file, Path):  # on a store an older driver may still commit it
            file.unlink(missing_ok=True)
    return Skipped(pump, tick, table.num_rows, place.rejected(pump, number)[-1])


def _pending(place: Checkpoint, entry: Mapping[str, Any]) -> dict[str, int]:
    """Return the tick of each sink whose rows may not have been delivered."""
    if not entry or place.published >= entry["tick"]:
        return {}
    return {name: output.get("tick", entry["tick"]) for name, output in entry["outputs"].items() if output["count"]}


def _waiting(
    place: Checkpoint, entry: Mapping[str, Any], name: str, plan: Fields, given: _Given
) -> list[tuple[Place, int, int]]:
    """Return the staged files that still exist, each with the number of its first row and its row count."""
    staged, number = entry["outputs"][name], entry["outputs"][name]["first"]
    stream = log_of(plan)
    if stream is not None:
        count = count_of(entries_of(given.home.log_path(stream), writer_of(pump_of(name))))
        if count > number - entry["control"][name].get("skipped", 0):
            return []  # the log has them: the driver died after that
    pump = pump_of(name)
    if plan["format"] in LAKES:
        assert place.plan is not None
        [target] = [lake_target for one, lake_target in lake_targets(place.plan, *given).items() if one == pump]
        table = target.table(pump).look(app_of(place.identity, pump))
        if table is not None and table.mark.tick >= staged.get("tick", entry["tick"]):
            return []  # so does the table
    files = []
    for path, rows in staged["files"]:
        file = _staged(place, staged["folder"]) / path
        if plan["format"] in LAKES and isinstance(file, Path) and not file.exists():
            file = file.parents[_DEEP] / moved_name(file, place.identity, pump)  # the table does not name it yet
        if rows and file.exists():
            files.append((file, number, rows))
        number += rows
    return files


def _staged(place: Checkpoint, folder: str) -> Place:
    return place_of(folder) if folder.startswith("/") or on_store(folder) else place.folder / folder


def _rejected(file: Place, number: int, count: int, pump: str, plan: Fields) -> pa.Table:
    """Return the rows of a staged file in the form of ``rejected``, with numbers as positions; text as raw records."""
    split, times = partitions_of(plan["format"], plan["options"]), pa.nulls(count, _TIME)
    values = zip(map(shown_as, split), values_of(inside(file, len(split))), strict=True)
    columns = {name: pa.array([value] * count, pa.string()) for name, value in values}
    records: list[str] | None = None
    if file.suffix == ".parquet":
        table, rowtime = read_table(file), plan["rowtime"]
        columns |= {shown_as(column): table[column] for column in table.column_names if column != rowtime}
        times = table[rowtime] if rowtime else times
    else:
        options = {name.lower(): value.lower() for name, value in plan["options"]}
        has_header = plan["format"] == "csv" and options.get("header") == "true"
        records = records_of(lines_of(file)[int(has_header) :], count)
    added = {
        "reason": pa.repeat(REASON, count),
        "refused_time": times,
        "refused_by": pa.nulls(count, _TIME),
        "writer": pa.repeat(writer_of(pump), count),
        "position": pa.array(range(number, number + count), pa.int64()),
        "raw_record": pa.nulls(count, pa.string()) if records is None else pa.array(records, pa.string()),
    }
    return pa.table({**columns, **added})


def records_of(lines: Sequence[str], count: int) -> list[str]:
    """Split lines into the records of so many rows: a quoted text may have several lines.

    If quotes do not separate them (the sink may have others), the last row gets the rest.
    """
    records: list[str] = []
    is_open = False
    for line in lines:
        if is_open or len(records) == count:
            records[-1] += f"\n{line}"
        else:
            records.append(line)
        is_open ^= line.replace('\\"', "").count('"') % 2 == 1 and len(lines) > count
    return [*records, *[""] * (count - len(records))]


def _after(entry: Mapping[str, Any], skipped: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the entry that records the skip; rows that other sinks have not delivered still wait."""
    name, pump = skipped["sink"], skipped["pump"]
    count = sum(part["count"] for part in skipped["parts"])
    gate = Counter({"in": 0, "accepted": 0, **entry["totals"].get(pump, {})})
    skipped["judged"] = gate["accepted"] >= count  # a gate has accepted them
    gate.update({REASON: count, **({"accepted": -count} if skipped["judged"] else {"in": count})})
    control = entry["control"][name]
    staged = {other: {"tick": entry["tick"], **output} for other, output in entry["outputs"].items() if other != name}
    return {
        **{key: value for key, value in entry.items() if key not in ("tick", "format", "sum")},
        "outputs": staged,
        "ledger": {},
        "refused": {pump: [path]},
        refused_files.KEY: refused_files.counted(entry, entry["tick"] + 1, {pump: [path]}, {}),
        "totals": {**entry["totals"], pump: dict(gate)},
        "control": {**entry["control"], name: {**control, "skipped": control.get("skipped", 0) + count}},
        "skipped": [*entry.get("skipped", ()), skipped],
    }


def unskipped(entry: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return the ledger as if nothing had been skipped."""
    totals = {gate: Counter(counts) for gate, counts in entry["totals"].items()}
    for skip in entry.get("skipped", ()):
        count = sum(part["count"] for part in skip["parts"])
        totals[skip["pump"]].subtract({REASON: count, **({"accepted": -count} if skip["judged"] else {"in": count})})
    kept = {
        gate: {name: n for name, n in counts.items() if n or name in ("in", "accepted")}
        for gate, counts in totals.items()
    }
    return {gate: counts for gate, counts in kept.items() if any(counts.values()) or gate in entry.get("ledger", {})}


def put_back(place: Checkpoint, entry: Mapping[str, Any], node: SinkNode, base: int, table: pa.Table) -> pa.Table:
    """Return a sink's rows, numbered from ``base`` on, with the skipped ones between them."""
    skips = [skip for skip in entry.get("skipped", ()) if skip["sink"] == node.name]
    if not skips or node.format in TEXT_FORMATS:
        return table
    rows = _skipped_rows(place, entry, skips)
    names = [*(["refused_time"] if node.rowtime else []), *map(shown_as, node.emits().names)]
    for part in (part for skip in skips for part in skip["parts"]):
        first, last = part["first"], part["first"] + part["count"] - 1
        mine = rows.filter(pc.and_(pc.greater_equal(rows["position"], first), pc.less_equal(rows["position"], last)))
        mine = mine.select(names).rename_columns(table.column_names if table.num_columns else node.columns)
        around = [table.slice(0, first - base), mine, table.slice(first - base)] if table.num_columns else [mine]
        table = pa.concat_tables(around, promote_options="permissive")
    return table


def skipped_lines(place: Checkpoint, entry: Mapping[str, Any], node: SinkNode) -> dict[str, list[str]]:
    """Return the skipped lines of text files, by the names of the files."""
    skips = [skip for skip in entry.get("skipped", ()) if skip["sink"] == node.name]
    if not skips or node.format not in TEXT_FORMATS:
        return {}
    skipped = _skipped_rows(place, entry, skips).select(["position", "raw_record"]).to_pydict()
    records = dict(zip(skipped["position"], skipped["raw_record"], strict=True))
    parts = [part for skip in skips for part in skip["parts"]]
    return {
        part["file"]: [
            line for n in range(part["first"], part["first"] + part["count"]) for line in records[n].split("\n")
        ]
        for part in parts
    }


def _skipped_rows(place: Checkpoint, entry: Mapping[str, Any], skips: Sequence[Mapping[str, Any]]) -> pa.Table:
    files = filter(is_skipped, place.rejected(skips[0]["pump"], entry["tick"]))
    return pa.concat_tables(map(read_table, files), promote_options="permissive")


def is_skipped(file: Place) -> bool:
    """Return True for a file of ``rejected`` from a skip."""
    return f"-{REASON.lower()}-" in file.name
