"""``rt.profile``: the profile of a DataFrame, or of a source by its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from rowtime.api.pipeline import Pipeline
from rowtime.api.relations import named
from rowtime.client.home import Home
from rowtime.core.columns import ROWTIME_NAME
from rowtime.core.errors import refuse
from rowtime.profiling.facts import Guards, facts_of
from rowtime.profiling.frame_rows import FrameReader
from rowtime.profiling.places import place_of_source
from rowtime.profiling.reading import Input, Reader
from rowtime.profiling.result import Profile
from rowtime.profiling.stretches import MOST_KEYS, Counted
from rowtime.profiling.targets import Target, targets_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEEP = 0.999


def profile(  # noqa: PLR0913 - options, each a keyword
    source: DataFrame | str | Path,
    *,
    time: str | None = None,
    writer: str | None = None,
    key: str | Sequence[str] = (),
    gate: str | None = None,
    keep: float = KEEP,
    spark: SparkSession | None = None,
    home: str | Path | None = None,
    variables: Mapping[str, str] | None = None,
    conf: Mapping[str, str] | None = None,
) -> Profile:
    """Return the disorder of the rows of a source, and the WITHIN that it needs.

    ``source``: a DataFrame that is not streaming, whose rows are in the order in which Spark gives them; or a script, a
    folder, file or glob of Parquet, CSV or JSON, a Delta table, or a stream of the ``home``, each read in the order in
    which rowtime reads it. ``time``: the column of times, a TIMESTAMP; by default the time that a gate of the script
    promotes, or the only TIMESTAMP column. ``writer``: a column of which each value has a clock of its own (at most
    10,000 values). ``key``: columns that tell rows of the same writer and time apart, to count duplicates. ``gate``:
    the gate or stream of a script with several. ``keep``: the share of the rows that WITHIN should keep. ``spark``,
    ``home``, ``conf``: as in `Pipeline`; ``variables``: of the script.

    All rows are read once, in Spark's tasks; a second time if files overlap in time by many rows, or if rows from the
    future need a guard. Raises ``Refused``: R103 for a column that does not exist, R124 for a streaming DataFrame, R620
    to R624; ``Failure`` (R501) if the source cannot be read.
    """
    also = Input(writer, (key,) if isinstance(key, str) else tuple(key))
    if isinstance(source, DataFrame):
        return _of_frame(source, time, also, keep)
    every = [*_targets(str(source), time, Pipeline(spark, home=home, conf=conf), variables or {})]
    chosen = [one for one in every if gate is None or one[1].name.lower() == gate.lower()]
    if len(chosen) != 1:
        names = ", ".join(target.name for _, target in every)
        what = f"{source} has no gate or stream {gate}" if gate else f"{source} has several gates and streams"
        raise refuse("R624", what, f"Name one of {names}.")
    return _of_target(*chosen[0], also, keep)


def profiles(  # noqa: PLR0913 - as `profile`
    source: str,
    pipeline: Pipeline,
    *,
    time: str | None = None,
    writer: str | None = None,
    key: Sequence[str] = (),
    keep: float = KEEP,
    variables: Mapping[str, str] | None = None,
) -> Iterator[Profile]:
    """Yield the profile of each gate and stream of a source, as `profile` does for one."""
    for one, target in _targets(source, time, pipeline, variables or {}):
        yield _of_target(one, target, Input(writer, tuple(key)), keep)


def _targets(
    source: str, time: str | None, pipeline: Pipeline, variables: Mapping[str, str]
) -> Iterator[tuple[Pipeline, Target]]:
    def session() -> SparkSession:
        return pipeline.session(pipeline.compile())

    place = place_of_source(source, Home(str(pipeline.home.path)), session)
    for target in targets_of(pipeline, place.text, variables, time, place.declares):
        yield pipeline, target


def _of_target(pipeline: Pipeline, target: Target, also: Input, keep: float) -> Profile:
    guards = Guards(None if target.gate is None else target.gate.early, target.may_be_guarded)
    with Reader(pipeline, target, also) as reader:
        counted = reader.read()
        _check(counted, also)
        in_order = partial(_again, reader)
        facts = facts_of(counted, in_order, guards, hashed=bool(also.key))
        names = reader.files
    column = also.writer or ("file" if names else "writer")
    time = target.promoted or ROWTIME_NAME
    return Profile(target.name, time, facts, column, names, target.rewrite, keep)


def _again(reader: Reader | FrameReader, early: int | None) -> Sequence[Counted]:
    return reader.read(ordered=True, early=early)


def _of_frame(frame: DataFrame, time: str | None, also: Input, keep: float) -> Profile:
    reader = FrameReader(frame, time, also)
    counted = reader.read()
    _check(counted, also)
    facts = facts_of(counted, partial(_again, reader), hashed=bool(also.key))
    rewrite = "SELECT STREAM {time} AS ROWTIME, * FROM rows ORDER BY {time} {clauses}"
    return Profile("rows", named(reader.time), facts, also.writer or "writer", {}, rewrite, keep)


def _check(counted: Sequence[Counted], also: Input) -> None:
    """Refuse (R622) a column of writers with too many values."""
    names = {name for task in counted for part in task.stretches for name in part.names} if also.writer else ()
    if any(task.crowded for task in counted) or len(names) > MOST_KEYS:
        what = f"{also.writer} has more than {MOST_KEYS:,} values, so it does not name writers"
        raise refuse("R622", what, "Name a column with fewer values, or none.")
