"""The input of a job: files in the order in which they came, one after the other."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq
from pyspark.errors import PySparkException

from rowtime.core.errors import headline, refuse
from rowtime.profiling.places import ending_of, format_of_ending

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

INFER: Final = {"csv": {"inferSchema": "true"}, "json": {"inferTimestamp": "true"}}
Watermarks = Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class Input:
    """Files of one format with the rows of one input; ``place`` is where the user has them.

    ``watermarks``: the delay of a column, given beside the job. ``files`` are in the order in which they came.
    ``original``: the input as the user has it, if its files were split.
    """

    name: str
    place: str
    kind: str
    options: Mapping[str, str]
    schema: StructType
    files: tuple[Path, ...]
    watermarks: Mapping[str, str]
    original: Input | None = None

    def static(self, spark: SparkSession, *, watched: bool = True) -> DataFrame:
        """Return all rows, as a batch reads them."""
        reader = spark.read.format(self.kind).options(**self.options).schema(self.schema)
        frame = reader.load([str(file) for file in self.files])
        return self._watched(frame) if watched else frame

    def streaming(self, spark: SparkSession, folder: Path) -> DataFrame:
        """Return the rows of the files that come into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        reader = spark.readStream.format(self.kind).options(**self.options).schema(self.schema)
        return self._watched(reader.load(str(folder)))

    def _watched(self, frame: DataFrame) -> DataFrame:
        for column, delay in self.watermarks.items():
            frame = frame.withWatermark(column, delay)
        return frame


@dataclass(frozen=True)
class Inputs:
    """All inputs; ``order`` has each file of each input, in the order in which they came."""

    every: tuple[Input, ...]

    @property
    def order(self) -> list[tuple[Input, Path]]:
        """Return the files of all inputs by time of change and name, each with its input."""
        return sorted(((one, file) for one in self.every for file in one.files), key=lambda pair: _age(pair[1]))

    def static(self, spark: SparkSession) -> dict[str, DataFrame]:
        """Return all rows of each input."""
        return {one.name: one.static(spark) for one in self.every}

    def streaming(self, spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
        """Return a stream for each input; `bring` lets files come into its folder."""
        return {one.name: one.streaming(spark, folder / one.name) for one in self.every}

    def bring(self, numbers: Sequence[int], folder: Path) -> None:
        """Let files come, by their numbers in ``order``; the number is in the name (`number_of`)."""
        order = self.order
        for number in numbers:
            one, file = order[number]
            link = folder / one.name / f"{number:06d}-{file.name}"
            try:
                os.link(file, link)
            except OSError:  # another file system
                shutil.copy2(file, link)


NUMBER: Final = r"/(\d{6})-[^/]*$"
"""Finds the number of a file in its path."""


def inputs_of(  # noqa: PLR0913 - the options of a command
    spark: SparkSession,
    places: Mapping[str, str],
    schemas: Mapping[str, str],
    options: Mapping[str, str],
    watermarks: Watermarks,
    rows_per_file: int | None,
    scratch: Path,
) -> Inputs:
    """Return the inputs at places, by name. ``rows_per_file``: their files are split, into files in ``scratch``.

    Raises ``Refused``: R631 for a place without files of one format, R633 if all is one file.
    """
    every = []
    for name, place in places.items():
        delays = {column: delay for (of, column), delay in watermarks.items() if of == name}
        one = _input(spark, name, place, schemas.get(name), options)
        one = replace(one, watermarks=delays)
        every.append(one if rows_per_file is None else _split(spark, one, rows_per_file, scratch / name))
    if sum(len(one.files) for one in every) == 1:
        hint = "An audit compares ways to group files into batches. Split it in order: --rows-per-file 1000."
        raise refuse("R633", f"{every[0].place} has only one file, which is one batch in any case", hint)
    return Inputs(tuple(every))


def _input(spark: SparkSession, name: str, place: str, schema: str | None, options: Mapping[str, str]) -> Input:
    files = sorted(_files(Path(place).absolute()), key=_age)
    formats = {ending_of(file.name) for file in files}
    if not files or len(formats) > 1 or "" in formats:
        what = "files of several or unknown formats" if files else "no files"
        hint = "Give a folder, file or glob of Parquet, CSV or JSON files. Folders inside of it are not read."
        raise refuse("R631", f"the input {name or place} ({place}) has {what}", hint)
    kind, defaults = format_of_ending(formats.pop())
    given = {**defaults, **options}
    reader = spark.read.format(kind).options(**given)
    try:
        if schema is not None:
            columns = reader.schema(schema).load(str(files[0])).schema
        else:
            columns = reader.options(**INFER.get(kind, {})).load([str(file) for file in files]).schema
    except PySparkException as error:
        hint = "Give the columns: --schema 'orders=at TIMESTAMP, id BIGINT'."
        raise refuse("R631", f"the columns of {name or place} are not known: {headline(error)}", hint) from error
    return Input(name, place, kind, given, columns, tuple(files), {})


def _files(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
        return
    folder, pattern = (place.parent, place.name) if "*" in place.name else (place, "*")
    yield from (file for file in folder.glob(pattern) if file.is_file() and not file.name.startswith((".", "_")))


def _split(spark: SparkSession, one: Input, rows: int, folder: Path) -> Input:
    """Write the rows of an input into files of so many rows, in order; their times of change ascend."""
    folder.mkdir(parents=True)
    files: list[Path] = []
    at = 0
    for file in one.files:
        table = replace(one, files=(file,)).static(spark, watched=False).toArrow()
        for start in range(0, max(1, table.num_rows), rows):
            part = folder / f"{file.name.split('.')[0]}-{start}.parquet"
            pq.write_table(table.slice(start, rows), part)
            at = max(at + 1, file.stat().st_mtime_ns)
            os.utime(part, ns=(at, at))
            files.append(part)
    return replace(one, kind="parquet", options={}, files=tuple(files), original=one)


def _age(file: Path) -> tuple[int, str, str]:
    return file.stat().st_mtime_ns, file.name, str(file)
