"""Files that are on disk between two runs: stream logs, definitions of streams, checkpoints."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from reliability.fuzz import mutate
from reliability.fuzz.harness import Target
from rowtime.cli.status import as_lines, status_of
from rowtime.client.home import Home
from rowtime.client.writer import Writer, open_writer
from rowtime.core.errors import Problem, RowtimeError
from rowtime.plan.program import compile_script
from rowtime.plan.stored import StoredPlan
from rowtime.runtime.sources.contract import Limits
from rowtime.runtime.sources.stream_log import StreamLogSource
from rowtime.state import journal
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.sealed import sealed
from rowtime.state.settings import waiting

CHECKPOINTS = Path(__file__).parents[2] / "tests" / "checkpoints"
COLUMNS = (("k", "STRING"), ("v", "BIGINT"))
Files = dict[str, bytes]


@cache
def _log() -> Files:
    """Return the files of a log in which two writers wrote rows, bounds, one of a column, and a leave."""
    with tempfile.TemporaryDirectory() as folder:
        definition = {
            "name": "s",
            "columns": [{"name": name, "type": kind} for name, kind in COLUMNS],
            "orders": [["v", "BIGINT", "ASCENDING"]],
        }
        for name in ("main", "b c"):
            with Writer(Path(folder), name, definition=definition) as writer:
                writer.insert([{"rowtime": 1, "k": "a", "v": 1}, {"rowtime": 2, "v": 2}])
                writer.set_rowtime_bound(5)
                writer.set_bound("v", 3)
                writer.insert([{"k": "b", "v": 3}])
                writer.close(leave=name != "main")
        return _files(Path(folder))


def _files(folder: Path) -> Files:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def _damaged(random_: random.Random, files: Files) -> Files:
    """Return the files with one or two changed: other content, another name, or missing."""
    found = dict(files)
    for _ in range(random_.choice((1, 1, 2))):
        name = random_.choice(sorted(found))
        content = found.pop(name)
        match random_.randrange(5):
            case 0:
                continue
            case 1:
                found[_renamed(random_, name)] = content
            case 2 if name.endswith(".json"):
                found[name] = _as_json(random_, content)
            case _:
                found[name] = mutate.data(random_, content)
    return found


def _renamed(random_: random.Random, name: str) -> str:
    parts = mutate.tokens_of(name)
    at = random_.randrange(len(parts))
    parts[at] = random_.choice(("0", "9", "x", parts[at] * 2, *mutate.NUMBERS, parts[at].upper()))
    changed = "".join(parts).replace("..", ".").strip("/")
    return changed if all(0 < len(part) < 200 for part in changed.split("/")) else name


def _as_json(random_: random.Random, content: bytes) -> bytes:
    try:
        return json.dumps(mutate.value(random_, json.loads(content))).encode()
    except ValueError:
        return mutate.data(random_, content)


def _placed(folder: Path, files: Files) -> None:
    for name, content in files.items():
        path = folder / name
        if not any(parent.is_file() for parent in path.parents) and not path.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _read_log(files: Files) -> Iterator[Problem]:
    with tempfile.TemporaryDirectory() as folder:
        _placed(Path(folder), files)
        source = StreamLogSource(Path(folder), COLUMNS)
        for limits in (Limits(), Limits(rows=2)):
            yield from _told(lambda: _taken(source, limits))  # noqa: B023 - called at once
        yield from _told(lambda: [source.finished({"main": 5}), StreamLogSource(source.log, COLUMNS, from_now=True)])
        yield from _told(lambda: _written(source.log))


def _told(use: Any) -> Iterable[Problem]:
    try:
        use()
    except RowtimeError as error:
        return error.problems
    return ()


def _taken(source: StreamLogSource, limits: Limits) -> None:
    part, _ = source.discover({}, limits, {})
    given = source.given(part)
    if given is not None:
        list(given[1])


def _written(log: Path) -> None:
    with Writer(log) as writer:
        writer.insert([{"k": "z", "v": 9}])


@cache
def _definition() -> Any:
    text = """CREATE STREAM s (k STRING NOT NULL, v BIGINT ASCENDING CHECK (v > 0), t TIMESTAMP)
    IDLE AFTER INTERVAL '10' SECOND"""
    return compile_script(text).defines[0].as_json()


def _define(random_: random.Random) -> bytes:
    if random_.random() < 0.2:
        return mutate.data(random_, json.dumps(_definition()).encode())
    return json.dumps(mutate.value(random_, _definition())).encode()


def _use(definition: bytes) -> Iterator[Problem]:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(folder)
        home.create()
        (home.path / "streams" / "s.json").write_bytes(definition)
        yield from compile_script("SELECT STREAM * FROM s", home).problems
        yield from _told(lambda: open_writer("s", home=home).close())


@cache
def _checkpoints() -> tuple[Files, ...]:
    """Return the files of the tests' checkpoints, without the rows: nobody reads them here."""
    found = (_files(folder / "checkpoint") for folder in sorted(CHECKPOINTS.glob("format_*/*")))
    small = [{name: content for name, content in files.items() if name.endswith(".json")} for files in found]
    return (*small, *map(_with_bases, small))


def _with_bases(files: Files) -> Files:
    """Return a checkpoint whose newest entry is stored as a large one is: as a difference from a base."""
    with tempfile.TemporaryDirectory() as name, patch.object(journal, "LARGE", 0):
        folder = Path(name)
        _placed(folder, files)
        entries = Checkpoint(folder).journal
        if last := entries.last():
            entries.commit(last["tick"] + 1, {key: value for key, value in last.items() if key != "tick"})
        return _files(folder)


def _checkpoint(random_: random.Random) -> Files:
    return _damaged(random_, {**random_.choice(_checkpoints()), "settings/1.json": sealed({"operator": "s", "at": 5})})


def _look(files: Files) -> Iterator[Problem]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _placed(folder, files)
        yield from _told(lambda: list(as_lines(status_of(folder))))
        yield from _told(lambda: _resumed(Checkpoint(folder)))


def _resumed(checkpoint: Checkpoint) -> None:
    plan, entry = checkpoint.plan, checkpoint.journal.last()
    checkpoint.bind(plan or StoredPlan.of_operators("", ()))
    waiting(checkpoint.folder, entry or {})
    checkpoint.sweep(entry)


def targets() -> tuple[Target, ...]:
    """Logs, definitions and checkpoints."""
    named: tuple[tuple[str, int, Any, Any], ...] = (
        ("log", 3, lambda random_: _damaged(random_, _log()), _read_log),
        ("definition", 6, _define, _use),
        ("checkpoint", 4, _checkpoint, _look),
    )
    return tuple(Target(*one) for one in named)
