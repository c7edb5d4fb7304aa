"""Formats and their options: the words after USING and in OPTIONS, one file per kind of source or sink."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rowtime.core.errors import Place, Problem, Refused, refuse
from rowtime.core.secrets import is_secret
from rowtime.plan.formats import jdbc, registry
from rowtime.plan.formats.contract import Format, Option, anything, as_table, options_of, taking, unused, whole
from rowtime.plan.formats.files import (
    CSV,
    DIRECTORIES,
    GROWING,
    JSON,
    ORDERED,
    PARQUET,
    PARTITIONS,
    ROWTIME_COLUMN,
    ROWTIME_WRITTEN,
)
from rowtime.plan.formats.foreign import column_problems
from rowtime.plan.formats.json_values import Definition, unit_problems, with_units
from rowtime.plan.formats.kafka import KAFKA
from rowtime.plan.formats.kafka_clients import SETTINGS
from rowtime.plan.formats.lake import CATALOG, DELTA, ICEBERG, LAKES, STATIC, place_problems
from rowtime.plan.formats.types import no_partitions
from rowtime.sql.statements import CreateStream, CreateTable, OptionPlace

_ANY_FILES: Final = ("pathGlobFilter", "recursiveFileLookup", "modifiedBefore", "modifiedAfter", "basePath", "encoding")
_INSIDE: Final = options_of(ROWTIME_WRITTEN, replace(ORDERED, default="`true`"))
FORMATS: Final[Mapping[str, Format]] = {
    "log": Format("a stream log", _INSIDE),
    "console": Format("console", _INSIDE),
    "memory": Format("memory", _INSIDE),
    "function": Format("function", _INSIDE),
    "rate": Format(
        "rate",
        options_of(
            Option("rowsPerSecond", whole(1), meaning="how many rows come in a second", default="`1`", side="source"),
            *unused("rows come at one rate from the start", "rampUpTime", "numPartitions", "rowsPerBatch"),
        ),
    ),
    "parquet": PARQUET,
    "csv": CSV,
    "json": JSON,
    "kafka": KAFKA,
    "jdbc": jdbc.JDBC,
    "delta": DELTA,
    "iceberg": ICEBERG,
}
TABLES: Final[Mapping[str, Format]] = {
    **{name: as_table(FORMATS[name]) for name in ("parquet", "csv", "json")},
    "jdbc": as_table(jdbc.JDBC),
    **STATIC,
    "session": Format("a table of the session", options_of()),
    "orc": Format("orc", options_of(*taking(anything, "path", "mergeSchema", *_ANY_FILES))),
    "text": Format("text", options_of(*taking(anything, "path", "wholetext", "lineSep", *_ANY_FILES))),
}
"""Formats of static tables with known options: there, all options of Spark's readers have an effect."""
_NEAR: Final = 0.7
_EXACT: Final = frozenset({"path", "rowtime.column", "ordered", "ends"})
"""Options that are looked up by their exact names, so they keep this spelling."""

Given = tuple[tuple[str, str], ...]


_NAMES: Final = frozenset(
    {name for form in (*FORMATS.values(), *TABLES.values(), jdbc.OTHER_DRIVERS) for name in form.options}
    | {f"kafka.{name}" for name in SETTINGS}
    | {f"{CATALOG}{name}" for name in ("type", "uri", "warehouse", "py-io-impl", "s3.endpoint", "s3.region", "prefix")}
    | {"stream"}  # the binder adds it: the name of the stream to which a pump writes
)


def is_known(option: str) -> bool:
    """Return True for an option of a format that holds no secret: people are shown the values of these alone."""
    return option.lower() in _NAMES and not is_secret(option)


def written_problems(kind: str, given: Given, place: Place) -> list[Problem]:
    """Return problems (R541) with the options of a stream to which a pump writes."""
    form = _form(FORMATS, kind, given)
    problems = []
    if kind in DIRECTORIES and "path" not in {name for name, _ in given}:
        problems.append(Problem("R207", f"a {kind} sink needs a path", place, "Add OPTIONS (path '/data/out')."))
    problems += place_problems(kind, (name for name, _ in given), place)
    for name, value in given:
        option = form.option(name) if form is not None else None
        wanted = option.written(value) if option is not None and option.written is not None else ""
        if option is not None and wanted:
            what = f"{option.name} '{value}' cannot be written: a sink takes {wanted!r}"
            problems.append(Problem("R541", what, place, "Define a separate stream to write to."))
    return problems


def with_options(statement: Definition) -> Definition:
    """Return a definition with its options, checked: units of columns are among them. Raises ``Refused``."""
    united = with_units(statement)
    return replace(united, options=_checked(united))


def _checked(statement: CreateStream | CreateTable) -> Given:
    """Return the options of a definition, with the standard spelling of rowtime's own; raises ``Refused``."""
    kind, name = (statement.using or "").lower(), statement.name.place
    if wrong := [*column_problems(statement.columns)]:
        raise Refused(*wrong)
    formats = TABLES if isinstance(statement, CreateTable) else FORMATS
    if kind and kind not in formats:
        near = difflib.get_close_matches(kind, formats, n=1, cutoff=_NEAR)
        if near or formats is FORMATS:
            hint = f"Did you mean {near[0]}? " if near else ""
            advice = f"{hint}There are: {', '.join(sorted(set(FORMATS) - {'log'}))}."
            raise refuse("R210", f"there is no format {statement.using}", advice, name)
        return statement.options  # any Spark source can be a table
    problems = [*unit_problems(kind, statement)]
    problems += [] if problems else _problems(_form(formats, kind or "log", statement.options), statement)
    if formats is TABLES and kind in LAKES:
        problems += place_problems(kind, (option for option, _ in statement.options), name)
    if problems:
        raise Refused(*problems)
    return tuple((name.lower() if name.lower() in _EXACT else name, value) for name, value in statement.options)


def read_problems(kind: str, given: Given, columns: Sequence[tuple[str, str]], place: Place) -> list[Problem]:
    """Return what a stream lacks that a query reads: the place of its items (R207, R504), and partitions (R596)."""
    names = {name.lower() for name, _ in given}
    if kind in DIRECTORIES and "path" not in names:
        return [Problem("R207", f"a {kind} source needs a path", place, "Add OPTIONS (path '/data/in').")]
    if kind in DIRECTORIES:
        names_there = [name for name, _ in columns]
        return [
            *no_partitions(kind, columns, given, place),
            *_folders(given, names_there, place),
            *_lines(given, place),
        ]
    if kind in LAKES:
        return [*place_problems(kind, names, place)]
    if kind != "kafka":
        return []
    problems = []
    if "kafka.bootstrap.servers" not in names:
        hint = "For example OPTIONS (kafka.bootstrap.servers 'host:9092', …)."
        problems.append(Problem("R504", "the option kafka.bootstrap.servers is missing", place, hint))
    if len(names & {"subscribe", "subscribepattern", "assign"}) != 1:
        what = "a Kafka source needs exactly one of the options subscribe, subscribePattern and assign"
        problems.append(Problem("R504", what, place, "For example OPTIONS (subscribe 'topic', …)."))
    return [*problems, *registry.lacking(given, "format", place)]


def _folders(given: Given, columns: Sequence[str], place: Place) -> Iterator[Problem]:
    """Yield problems (R596) with partition folders: undeclared columns, all columns, or the rowtime."""
    options = {name.lower(): value for name, value in given}
    split = [part.strip() for part in options.get(PARTITIONS.lower(), "").split(",") if part.strip()]
    for name in split:
        if name not in columns:
            hint = f"Declare {name}; there are {', '.join(columns)}."
            yield Problem("R596", f"PARTITIONED BY names {name}, which is not a column", place, hint)
        if name.lower() == options.get(ROWTIME_COLUMN.name, "").lower():
            what = f"{name} gives the rowtime, but it comes from the names of folders, so a folder has one rowtime"
            yield Problem(
                "R596", what, place, "Leave rowtime.column out, and promote a column of the files: AS ROWTIME."
            )
    if split and {*columns} <= {*split}:
        yield Problem(
            "R596", "PARTITIONED BY names all columns", place, "Leave one out: the files need at least one column."
        )


def _lines(given: Given, place: Place) -> Iterator[Problem]:
    """Yield problems (R542) with options that make a line not a record, so that a growing file has no complete part."""
    options = {name.lower(): value.lower() for name, value in given}
    if options.get(GROWING) != "true":
        return
    for name, alike in (("multiline", ("false",)), ("linesep", ("\n", "\\n")), *_ENCODINGS):
        if name in options and options[name] not in alike:
            what = f"a growing file is read up to its last complete line, but {name} '{options[name]}' has no lines"
            yield Problem(
                "R542", what, place, f"Leave {name} out; or leave growing out, and rename a file when it is complete."
            )


_ENCODINGS: Final = tuple((name, ("utf-8", "utf8", "us-ascii", "iso-8859-1")) for name in ("encoding", "charset"))


def _form(formats: Mapping[str, Format], kind: str, given: Given) -> Format | None:
    """Return the options of a format; those of a database depend on its driver."""
    if kind != "jdbc":
        return formats.get(kind)
    of_driver = jdbc.of_url(next((value for name, value in given if name.lower() == "url"), ""))
    return as_table(of_driver) if formats is TABLES else of_driver


def _problems(form: Format | None, statement: CreateStream | CreateTable) -> list[Problem]:
    """Return problems with the options of a definition: names (R540), values (R541), those without effect (R542)."""
    seen: set[str] = set()
    problems = []
    for (name, value), at in zip(statement.options, statement.option_places, strict=True):
        if name.lower() in seen:
            problems.append(Problem("R541", f"the option {name} is given twice", at.name, "Keep one of the two."))
        elif form is not None:
            problems.extend(_problem(form, name, value, statement.options, at))
        seen.add(name.lower())
    return problems


def _problem(form: Format, name: str, value: str, given: Given, at: OptionPlace) -> Iterator[Problem]:
    option = form.option(name)
    if option is None:
        names = [one.lower() for one, _ in given]
        what = f"{form.name} has no option {name}" if form.others is None else form.others(name, names)
        if what:
            yield Problem("R540", what, at.name, form.nearest(name))
    elif option.because:
        if value.lower() not in option.alike:
            what = f"the option {option.name} has no effect here: {option.because}"
            yield Problem("R542", what, at.name, "Leave it out.")
    elif wanted := option.takes(value):
        yield Problem("R541", f"{option.name} takes {wanted}", at.value, _meant(value, wanted))


def _meant(value: str, wanted: str) -> str:
    """Return a hint if a value nearly spells one of a few words."""
    words = [word for part in wanted.split(" or ") for word in part.split(", ")]
    near = difflib.get_close_matches(value.lower(), [word.lower() for word in words], n=1, cutoff=_NEAR)
    return f"Did you mean {near[0]}?" if near else ""
