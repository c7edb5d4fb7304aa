"""A lake table as a source: the files that its versions add, numbered in order; the table is one writer.

The files in the log get their numbers once, whole versions at a time, and are in the checkpoint from then on
(`file_list`). So a tick may take a part of a version, and it can be read again as long as its files exist, whatever
happens to the log. The position of a row is its file's number and its row number in the file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, Final

from rowtime.core.errors import Failure, Problem, Refused, refuse
from rowtime.core.stores import Place
from rowtime.plan.formats.lake import SKIPS, STARTS
from rowtime.runtime.sources.contract import Backlog, Division, Given, Limits, Offsets, Slice, Source
from rowtime.runtime.sources.failures import naming
from rowtime.runtime.sources.file_faults import Expected
from rowtime.runtime.sources.file_list import FileList, NumberedFile, is_as_numbered
from rowtime.runtime.sources.file_places import each, in_store
from rowtime.runtime.sources.lake_columns import check_columns
from rowtime.runtime.sources.lake_files import THE_WRITER, TableFiles
from rowtime.runtime.sources.numbering import within
from rowtime.runtime.sources.table_history import History, Look, gone, missing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CHANGED: Final = (
    "A stream reads only rows that are appended. To skip such versions with all of their rows, set the option "
    "skipChangeCommits 'true'. Or start with a new checkpoint, which reads the table as it is now."
)


class LakeSource(Source):
    """The table of a ``history`` as a ``Source`` of the stream ``name``; ``notes`` stores the numbers of its files."""

    in_band = False
    decodes = False
    steady = True

    def __init__(
        self,
        name: str,
        history: History,
        options: Mapping[str, str],
        columns: Sequence[tuple[str, str]],
        notes: Place,
    ) -> None:
        given = {key.lower(): value for key, value in options.items()}
        self._name, self._history, self._columns = name, history, list(columns)
        self._begins = given.get(STARTS.lower(), "").lower()
        self._skips = given.get(SKIPS.lower(), "").lower() == "true"
        self._rowtime = given.get("rowtime.column", "")
        self._list = FileList(notes)
        self._reader: TableFiles | None = None
        self._place: int | None = None
        self._identity = ""
        self._mark: tuple[int | None, str] = (None, "")  # a place, and that of its version
        self._checked: Look | None = None
        self._loaded = False
        self.gives_rowtime = bool(self._rowtime)

    def discover(self, start: Offsets, limits: Limits, state: Mapping[str, Any]) -> tuple[Slice, Mapping[str, Any]]:
        """Number the files of the next versions and take the next files, within the limits, at least one.

        Raises ``Refused``: R574 for a version that changes rows, R575 to R578, see `table_history`.
        """
        with naming("stream", self._name):
            return self._discovered(start.get(THE_WRITER, 0), limits, state)

    def _discovered(self, first: int, limits: Limits, state: Mapping[str, Any]) -> tuple[Slice, Mapping[str, Any]]:
        self._load(state)
        look = self._looked()
        if self._place is None:
            self._begin(look)
        assert self._place is not None
        open_before = _versions(self._list.files[first:]) + self._history.behind(self._place)
        self._number(first, limits)
        taken = list(_each_once(within(self._list.files[first:], limits)))
        self._check(taken)
        self._list.write(len(self._list.files))
        backlog = self._backlog(taken, first + len(taken), open_before)
        return replace(self._files.slice_of(first, taken), backlog=backlog), self._state()

    def _backlog(self, taken: Sequence[NumberedFile], end: int, open_before: int) -> Backlog:
        """Return the rest in bytes; in versions while some are not examined (`_number`), so that this costs nothing."""
        assert self._place is not None
        unread = self._history.behind(self._place)
        if not unread:
            return Backlog("bytes", *(sum(file.size for file in files) for files in (taken, self._list.files[end:])))
        left = _versions(self._list.files[end:]) + unread
        return Backlog("versions", max(0, open_before - left), left)

    def between(self, start: Offsets, end: Offsets, state: Mapping[str, Any]) -> Slice:
        """Return the files between two numbers; raises ``Failure`` (R501) if one is missing."""
        first, last = start.get(THE_WRITER, 0), end[THE_WRITER]
        self._list.load(state.get("listed", 0), state.get("sum"), whole=True)
        taken = self._list.files[first:last]
        unchanged = each(is_as_numbered, taken, stored=in_store(file.path for file in taken))
        if lost := next((file.path for file, same in zip(taken, unchanged, strict=True) if not same), None):
            what = f"{self._history.called} cannot be read again: {lost} is gone or has changed"
            raise Failure(Problem("R501", what, hint="Restore the files."))
        return self._files.slice_of(first, taken)

    def read(self, spark: SparkSession, part: Slice) -> DataFrame:
        """See `TableFiles.read`."""
        return self._files.read(spark, part)

    def given(self, part: Slice, columns: Collection[str] | None = None) -> Given | None:
        """See `FilesSource.given`; Spark reads the objects of a store, because it has its workers' access to them."""
        stored = in_store(path for _, path, _ in part.detail["files"])
        return None if stored else self._files.given(part, columns)

    def divided(self, part: Slice, many: int) -> Division | None:
        """See `FilesSource.divided`, and `given`."""
        stored = in_store(path for _, path, _ in part.detail["files"])
        return None if stored else self._files.divided(part, many)

    def finished(self, at: Offsets) -> bool:
        """Return True once every file of the present versions has been taken."""
        look = self._history.look()
        return at.get(THE_WRITER, 0) >= len(self._list.files) and (look is None or look.place == self._place)

    @property
    def _wanted(self) -> dict[str, str]:
        """Return the columns of the files, with the one for the rowtime."""
        wanted = dict(self._columns)
        present = {name.lower() for name in wanted}
        return wanted if self._rowtime.lower() in ("", *present) else {**wanted, self._rowtime: "TIMESTAMP"}

    # -- the table ----------------------------------------------------------------------

    def _load(self, state: Mapping[str, Any]) -> None:
        """Read the numbers, once."""
        if not self._loaded:
            self._list.load(state.get("listed", 0), state.get("sum"))
            self._place, self._identity = state.get("place"), state.get("table", "")
            self._mark = self._place, state.get("mark", "")
            self._loaded = True

    def _state(self) -> dict[str, Any]:
        count = len(self._list.files)
        if self._place is not None and self._mark[0] != self._place:
            self._mark = self._place, self._history.mark(self._place)
        mark = {"mark": self._mark[1]} if self._mark[1] else {}
        return {"listed": count, "sum": self._list.sum_of(count), "place": self._place, "table": self._identity, **mark}

    def _looked(self) -> Look:
        """Return the present table, which is the checkpoint's. Raises ``Refused`` (R575 to R577)."""
        look, called = self._history.look(), self._history.called
        if look is None and self._identity:
            raise gone(called, "the table is gone")
        if look is None:
            raise missing(called)
        if self._identity not in ("", look.identity):
            raise gone(called, "it was created again: this is another table")
        if self._rowtime.lower() in map(str.lower, look.partitions):
            hint = "Name another column, or none: the rowtime is then the time of the version."
            raise refuse("R577", f"{called} is partitioned by {self._rowtime}, which cannot be the rowtime", hint)
        check_columns(self._name, called, look, self._wanted)
        if look is not self._checked and self._mark[1]:
            place, mark = self._mark
            assert place is not None
            if self._history.mark(place) not in ("", mark):  # an old entry may have been removed
                raise gone(called, f"version {place} is not the one that was read: it was restored, and written since")
        self._identity, self._checked = look.identity, look
        return look

    def _begin(self, look: Look) -> None:
        """Begin the first start: at the present table, after it, or with a version."""
        if not self._begins:
            self._add(self._history.whole(look.place))
        latest = self._begins in ("", "latest")
        self._place = look.place if latest else self._history.before(int(self._begins))

    def _number(self, first: int, limits: Limits) -> None:
        """Number the files of further versions, until there are enough for a tick. Raises ``Refused`` (R574)."""
        assert self._place is not None
        if limits.files is not None and len(self._list.files) - first >= limits.files:
            return
        for version in self._history.since(self._place):
            if version.changed and not self._skips:
                if len(self._list.files) > first:
                    return  # earlier files go first
                what = f"{self._history.called} of the stream {self._name}: version {version.place} {version.changed}"
                raise refuse("R574", what, _CHANGED)
            self._add(() if version.changed else version.files)
            self._place = version.place
            if limits.files is not None and len(self._list.files) - first >= limits.files:
                return

    def _add(self, files: Sequence[NumberedFile]) -> None:
        """Give numbers to files; semantics 2.4: an arrival time that goes back is raised to the previous one."""
        latest = self._list.files[-1].arrived if self._list.files else 0
        arrivals = accumulate((file.arrived for file in files), max, initial=latest)
        raised = zip(files, islice(arrivals, 1, None), strict=True)
        self._list.add([file if file.arrived == at else replace(file, arrived=at) for file, at in raised])

    def _check(self, taken: Sequence[NumberedFile]) -> None:
        """Check the files before they are read. Raises ``Refused`` (R576, R577)."""
        faults = each(self._fault_of, taken, stored=in_store(file.path for file in taken))
        if refused := next(filter(None, faults), None):
            raise refused

    def _fault_of(self, file: NumberedFile) -> Refused | None:
        where = f"{file.path} of version {file.version}" if file.version else file.path
        if not is_as_numbered(file):
            return gone(self._history.called, f"{where} is gone (VACUUM?) or differs from the log")
        partitions = {name.lower() for name in file.values}
        types = {name: of for name, of in self._wanted.items() if name.lower() not in partitions}
        why = Expected("parquet", types, self._rowtime).fault_of(file.path)
        if why is None:
            return None
        what = f"the stream {self._name} cannot read {where} of {self._history.called}: {why}"
        hint = "Rewrite the table with these columns in another engine, or begin after it (startingVersion)."
        return refuse("R577", what, hint)

    # -- rows -------------------------------------------------------------------------

    @property
    def _files(self) -> TableFiles:
        if self._reader is None:
            self._reader = TableFiles(self._columns, self._rowtime)
        return self._reader


def _versions(files: Iterable[NumberedFile]) -> int:
    """Return how many versions have added some files."""
    return len({file.version for file in files})


def _each_once(files: Iterable[NumberedFile]) -> Iterator[NumberedFile]:
    """Yield files up to one that has come before: a table that was restored may have it twice."""
    seen: set[str] = set()
    for file in files:
        if file.path in seen:
            return
        seen.add(file.path)
        yield file
