"""OPTIONS of sinks on servers: a table of a database, a topic of Kafka. Misfits are refused before a start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rowtime.core.errors import Place, Refused, refuse
from rowtime.core.secrets import shown
from rowtime.operators.sinks.sink import Sink
from rowtime.plan.formats import is_known, written_problems
from rowtime.plan.formats.files import DIRECTORIES, PARTITIONS
from rowtime.plan.formats.kafka_transactions import TRANSACTIONS, client_settings
from rowtime.plan.formats.lake import FILES, INTERVAL, LAKES, micros_of
from rowtime.plan.formats.registry import lacking

CHANGE: Final = "change"  # the column with RETRACT or INSERT, in mode 'changes'
TABLE_MODES: Final = ("append", "upsert", "changes")
TOPIC_MODES: Final = ("append", "changes")
DRIVERS: Final = {"postgresql": "org.postgresql.Driver", "mysql": "com.mysql.cj.jdbc.Driver"}
_OURS: Final = ("url", "dbtable", "mode", "key", "driver", "stream", "ordered", "rowtime.column")
_DATABASE: Final = "OPTIONS (url 'jdbc:postgresql://host/database', dbtable 'name', key 'a, b', …)"


@dataclass(frozen=True)
class TableOptions:
    """The place of a table and how rows are written; ``given``: options for the driver."""

    url: str
    table: str
    key: tuple[str, ...]
    mode: str
    driver: str
    given: Mapping[str, str]

    @classmethod
    def of(cls, named: Mapping[str, str]) -> TableOptions:
        """Read the options; raises ``Refused`` (R504)."""
        options = {name.lower(): value for name, value in named.items()}
        url, table = (_needed(options, name, _DATABASE) for name in ("url", "dbtable"))
        mode, key = mode_and_key(options, "a database")
        driver = options.get("driver") or driver_of(url)
        if not driver:
            hint = "Name its class: OPTIONS (driver '…')."
            raise refuse("R504", f"the driver of {shown('url', url, is_known)} is not known", hint)
        given = {name: value for name, value in named.items() if name.lower() not in _OURS}
        return cls(url, table, key, mode, driver, given)

    def fit(self, names: Sequence[str]) -> None:
        """Refuse (R504) rows that lack a column of the key, or the change column."""
        for name in self.key:
            has(names, name, "key")
        if self.mode == "changes":
            has(names, CHANGE, "mode 'changes'")


@dataclass(frozen=True)
class TopicOptions:
    """The topic and its record format; ``key`` is one column as it is, ``keys`` make a JSON object.

    ``bounds``: records include bounds. ``transactions``: each tick is a transaction.
    """

    topic: str
    raw: bool
    key: str | None
    keys: tuple[str, ...]
    mode: str
    bounds: bool = True
    transactions: bool = False

    @classmethod
    def of(cls, named: Mapping[str, str]) -> TopicOptions:
        """Read the options; raises ``Refused`` (R504)."""
        options = {name.lower(): value for name, value in named.items()}
        _needed(options, "kafka.bootstrap.servers", "For example OPTIONS (kafka.bootstrap.servers 'host:9092', …).")
        topic = _needed(options, "topic", "OPTIONS (topic 'name', …)")
        raw, keys = options.get("value.format", "json").lower() == "raw", listed(options.get("key.columns", ""))
        if keys and ("key.column" in options or raw):
            raise refuse(
                "R504", "key.columns cannot be combined with key.column or value.format 'raw'", "Use one of them."
            )
        mode = options.get("mode", "append").lower()
        if mode not in TOPIC_MODES or (mode == "changes" and not keys):
            hint = (
                f"The modes are {' and '.join(TOPIC_MODES)}; OPTIONS (mode 'changes', key.columns 'hour, airport', …)."
            )
            raise refuse("R504", f"mode '{mode}' is not supported, or lacks key.columns", hint)
        if wrong := list(lacking(named.items(), "value.format", None)):
            raise Refused(*wrong)
        bounds = options.get("bounds", "true").strip().lower() == "true"
        transactions = options.get(TRANSACTIONS, "false").strip().lower() == "true"
        if transactions:
            client_settings(options)
        return cls(topic, raw, options.get("key.column"), keys, mode, bounds, transactions)

    def fit(self, names: Sequence[str]) -> None:
        """Refuse (R504) rows that lack a column of the key, the raw value, or the change column."""
        needed = dict.fromkeys(self.keys, "key.columns")
        needed |= {self.key: "key.column"} if self.key is not None else {}
        needed |= {"value": "value.format 'raw'"} if self.raw else {}
        needed |= {CHANGE: "mode 'changes'"} if self.mode == "changes" else {}
        for name, option in needed.items():
            has(names, name, option)


@dataclass(frozen=True)
class LakeOptions:
    """``mode``: ``append``, ``upsert`` or ``changes``; the columns of the ``key`` and of the ``partitions``.

    ``interval``: the time between two commits (µs), 0 for a commit a tick; ``files``: after how many new files the
    table is compacted, 0 for never.
    """

    mode: str
    key: tuple[str, ...]
    partitions: tuple[str, ...]
    interval: int = 0
    files: int = 0

    @classmethod
    def of(cls, named: Mapping[str, str]) -> LakeOptions:
        """Read the options; raises ``Refused`` (R504)."""
        options = {name.lower(): value for name, value in named.items()}
        mode, key = mode_and_key(options, "a lake table")
        partitions, interval = listed(options.get(PARTITIONS.lower(), "")), options.get(INTERVAL, "")
        return cls(mode, key, partitions, micros_of(interval) if interval else 0, int(options.get(FILES, 0)))

    def fit(self, names: Sequence[str], required: Sequence[str]) -> None:
        """Refuse (R504, R567) rows that lack a column of the key, of the partitions, or the change column."""
        for name in self.key:
            has(names, name, "key")
            if name not in required:
                what = f"the key of a lake table is NOT NULL, and {name} may be NULL"
                raise refuse("R567", what, f"Declare {name} NOT NULL: a row without it is then refused at the gate.")
        fit_partitions(self.partitions, names)
        if self.mode == "changes":
            has(names, CHANGE, "mode 'changes'")

    def written(self, names: Sequence[str]) -> list[str]:
        """Return the columns of the rows that are written to the table."""
        return [name for name in names if self.mode != "changes" or name != CHANGE]


def driver_of(url: str) -> str:
    """The class of the driver for a JDBC url; empty if it is not known."""
    return DRIVERS.get(url.split(":")[1] if ":" in url else "", "")


def partitions_of(kind: str, options: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the columns by which a directory is partitioned."""
    given = {name.lower(): value for name, value in options} if kind in DIRECTORIES else {}
    return listed(given.get(PARTITIONS.lower(), ""))


def fit_partitions(partitions: Sequence[str], names: Sequence[str]) -> None:
    """Refuse (R504) partitions by columns that the rows lack, or that leave no column for the files."""
    for name in partitions:
        has(names, name, "PARTITIONED BY")
    if partitions and set(names) <= {*partitions, CHANGE}:
        raise refuse("R504", "PARTITIONED BY names all columns", "Leave one out: the files need at least one column.")


def fitting(sink: Sink, place: Place, required: Sequence[str]) -> Sink:
    """Check that the options of a sink fit its rows, and return it; ``required``: NOT NULL columns. Raises R504."""
    options = dict(sink.options)
    if wrong := written_problems(sink.format, sink.options, place):
        raise Refused(*wrong)
    try:
        if sink.format == "jdbc":
            TableOptions.of(options).fit(sink.columns)
        elif sink.format == "kafka":
            TopicOptions.of(options).fit(sink.emits().names)
        elif sink.format in LAKES:
            LakeOptions.of(options).fit(sink.columns, required)
        else:
            fit_partitions(partitions_of(sink.format, sink.options), sink.columns)
    except Refused as refused:
        raise Refused(*(replace(problem, place=place) for problem in refused.problems)) from None
    return sink


def _needed(options: Mapping[str, str], name: str, hint: str) -> str:
    if not options.get(name):
        raise refuse("R504", f"the option {name} is missing", hint)
    return options[name]


def mode_and_key(options: Mapping[str, str], target: str) -> tuple[str, tuple[str, ...]]:
    """Return the mode of a table, and the columns of its key; raises ``Refused`` (R504)."""
    key = listed(options.get("key", ""))
    mode = options.get("mode", "upsert" if key else "append").lower()
    if mode not in TABLE_MODES:
        raise refuse("R504", f"{target} has no mode {mode}", f"There are: {', '.join(TABLE_MODES)}.")
    if (mode == "append") == bool(key):
        hint = "OPTIONS (mode 'upsert', key 'hour, airport', …): the columns of which a table has one row each."
        raise refuse("R504", f"mode {mode} and key {', '.join(key) or '(none)'} cannot be combined", hint)
    return mode, key


def key_of_rows(sink: Sink) -> tuple[str, ...]:
    """The columns of a table of which it has one row each; empty if every row of a sink is added."""
    if sink.format in LAKES or sink.format == "jdbc":
        return mode_and_key({name.lower(): value for name, value in sink.options}, "a table")[1]
    return ()


def listed(text: str) -> tuple[str, ...]:
    """Return the names in a comma-separated list."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def has(names: Sequence[str], name: str, option: str) -> None:
    """Refuse (R504) rows without a column that an option names."""
    if name not in names:
        hint = "EMIT CHANGES gives it: select it, and declare it." if name == CHANGE else ""
        raise refuse("R504", f"{option} needs a column {name!r}", hint or f"There are {', '.join(names)}.")
