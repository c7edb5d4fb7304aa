"""The book of a database: which pump of which checkpoint writes a table, and its next row (semantics 10).

It is a table of ours, ``rowtime_sinks``, beside the target, with one row for each table and pump:

    sink       the table and the pump, ``flights/p``; behind them, of one that was taken over, its checkpoint
    next_row   the number of the row that comes next; it changes in the transaction that brings the rows
    owner      the checkpoint that the pump belongs to (`ownership`), where its folder stood, and since when (µs UTC)
    base       the number of the checkpoint's first row
    link       what identifies the rows up to the next one (`ownership`)

Release 0.2.0 had no link.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types

from rowtime.core.counts import counted
from rowtime.runtime.sinks.ownership import Contents, Proof, Record
from rowtime.state.checkpoint import folder_of

BOOK: Final = "rowtime_sinks"
_LONGEST: Final = 340  # characters of a key; that of a checkpoint is appended
_LINK: Final = "link VARCHAR(16)"
_COLUMNS: Final = (
    "sink VARCHAR(400) NOT NULL PRIMARY KEY, next_row BIGINT NOT NULL, owner VARCHAR(64), place VARCHAR(2000), "
    f"since BIGINT, base BIGINT, {_LINK}"
)
_PLACE: Final = 2000


def key_of(table: str, pump: str) -> str:
    """Return the row's key for a pump and a table, without the schema: the book is in it."""
    name = table.rpartition(".")[2]
    name = name.strip('"') if name.startswith('"') else name.lower()
    key = f"{folder_of(name)}/{folder_of(pump)}"
    return key if len(key) <= _LONGEST else f"{key[:300]}~{sha256(key.encode()).hexdigest()[:32]}"


class Book:
    """The book, for one pump and one table, through a connection without auto-commit."""

    def __init__(self, connection: Any, prefix: str, key: str) -> None:
        self._connection, self._name, self._key = connection, f"{prefix}{BOOK}", key

    def prepare(self) -> None:
        """Create the book, or add the link to that of release 0.2.0."""
        if self._has("link"):
            return
        change = f"ALTER TABLE {self._name} ADD {_LINK}"
        if not self._has("sink"):
            change = f"CREATE TABLE {self._name} ({_COLUMNS})"
        try:
            self._change(change)
            self._connection.commit()
        except Py4JJavaError:  # another pipeline has just done it
            self._connection.rollback()
            if not self._has("link"):
                raise

    def record(self, pump: str, identity: str) -> Record | None:
        """Return the record of the pump; of former owners it names only this checkpoint, if it was one."""
        rows = self._rows(f"SELECT owner, place, since, base FROM {self._name} WHERE sink = ?", self._key)  # noqa: S608
        if not rows:
            return None
        owner, place, since, base = rows[0]
        before = () if self.next_row(f"{self._key}/{identity}") is None else ({"identity": identity},)
        return Record(pump, owner, place, int(since), int(base), before=before)

    def next_row(self, sink: str | None = None) -> int | None:
        """Return the number of the next row; ``None`` if the book has no row for it."""
        rows = self._rows(f"SELECT next_row FROM {self._name} WHERE sink = ?", sink or self._key)  # noqa: S608
        return int(rows[0][0]) if rows else None

    def proof_of(self, identity: str) -> Proof | None:
        """Return the same with its link, while the pump belongs to a checkpoint."""
        text = f"SELECT next_row, link FROM {self._name} WHERE sink = ? AND owner = ?"  # noqa: S608
        rows = self._rows(text, self._key, identity)
        return Proof(int(rows[0][0]), rows[0][1] or "") if rows else None

    def contents(self) -> Contents | None:
        """Return what exists by the record."""
        following = self.next_row()
        return None if following is None else Contents(following, None, counted(following, "rows"))

    def write(self, record: Record, before: str | None) -> bool:
        """Record a new owner, in place of the checkpoint ``before``; return False if another one was faster."""
        try:
            if before is not None:
                moved = f"UPDATE {self._name} SET sink = ? WHERE sink = ? AND owner = ?"  # noqa: S608
                if not self._change(moved, f"{self._key}/{before}", self._key, before):
                    self._connection.rollback()
                    return False
            given = "(sink, next_row, owner, place, since, base)"
            values = (self._key, record.base, record.identity, record.place[:_PLACE], record.since, record.base)
            self._change(f"INSERT INTO {self._name} {given} VALUES (?, ?, ?, ?, ?, ?)", *values)  # noqa: S608
            self._connection.commit()
        except Py4JJavaError:
            self._connection.rollback()
            if self._rows(f"SELECT owner FROM {self._name} WHERE sink = ?", self._key):  # noqa: S608
                return False
            raise
        return True

    def advance(self, identity: str, before: int, after: Proof) -> bool:
        """Record the next number and its link in the current transaction, in place of the number ``before``.

        Return False if the checkpoint does not own the table any more, or if another driver of it has added rows since.
        It locks the row of the book, so that nobody takes over before the transaction ends.
        """
        text = f"UPDATE {self._name} SET next_row = ?, link = ? WHERE sink = ? AND owner = ? AND next_row = ?"  # noqa: S608
        return bool(self._change(text, after.rows, after.link, self._key, identity, before))

    # -- statements -------------------------------------------------------------------

    def _has(self, column: str) -> bool:
        try:
            self._rows(f"SELECT {column} FROM {self._name} WHERE 1 = 0")  # noqa: S608
        except Py4JJavaError:
            self._connection.rollback()
            return False
        return True

    def _rows(self, text: str, *values: str | int) -> list[tuple[Any, ...]]:
        with self._prepared(text, values) as statement:
            answer = statement.executeQuery()
            width = answer.getMetaData().getColumnCount()
            rows = []
            while answer.next():
                rows.append(tuple(answer.getString(n + 1) for n in range(width)))
            return rows

    def _change(self, text: str, *values: str | int) -> int:
        with self._prepared(text, values) as statement:
            return int(statement.executeUpdate())

    @contextlib.contextmanager
    def _prepared(self, text: str, values: Sequence[str | int]) -> Iterator[Any]:
        statement = self._connection.prepareStatement(text)
        try:
            for number, value in enumerate(values, 1):
                if isinstance(value, int):
                    statement.setLong(number, value)
                else:
                    statement.setString(number, value)
            yield statement
        finally:
            statement.close()
