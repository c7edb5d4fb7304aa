"""Foreign streams of SQLstream: ``SERVER FILE_SERVER OPTIONS (DIRECTORY …)`` as ``USING csv OPTIONS (path …)``.

``SERVER KAFKA_SERVER OPTIONS (TOPIC …, SEED_BROKERS …)`` is ``USING kafka OPTIONS (subscribe …)``. A server of the
script (``CREATE SERVER s TYPE 'KAFKA' …``) has a kind, and options that its streams need not repeat. Only options with
the same meaning in both systems are translated. Anything else is refused, with the form to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, NoReturn

from rowtime.core.errors import Problem, refuse
from rowtime.plan.finite import ENDS
from rowtime.sql.generate import literal
from rowtime.sql.statements import ColumnDef, CreateServer, CreateStream, OptionPlace

FILES: Final = "file_server"
TOPICS: Final = ("kafka_server", "kafka10_server")
FORMS: Final = ("csv", "json", "parquet")
KINDS: Final = {"file": FILES, "kafka": TOPICS[0], "kafka10": TOPICS[1]}
"""The predefined servers, by the TYPE of CREATE SERVER."""

Translated = tuple[str, str] | None
"""An option with its value, or ``None`` if no option is needed."""
_REGEX: Final = re.compile(r"\.\*|\.|\\([.\-_])|([A-Za-z0-9_-]+)")


def of_server(statement: CreateStream, servers: Mapping[str, CreateServer]) -> CreateStream:
    """Return the definition with ``USING`` instead of a server; raises ``Refused`` (R207) for an unknown server.

    ``servers`` are those that the script defines.
    """
    if statement.server is None or statement.using is not None:
        return statement
    if (server := servers.get(statement.server.lower())) is not None:
        if server.type.lower() not in KINDS:
            kind = f"of TYPE {literal(server.type)}" if server.type else "without a TYPE"
            _refuse(statement, "", f"the server {statement.server} {kind}")
        statement = _with_options(statement, server)
    assert statement.server is not None
    given = {name.lower(): value for name, value in statement.options}
    form = given.get("parser", given.get("formatter", "")).lower()
    if statement.server.lower() in TOPICS:
        if "formatter" not in given and "starting_time" not in given:
            _refuse(statement, form, "a topic without a STARTING_TIME that says where to begin")
        return _translated(statement, "kafka", form, _of_topic(given))
    if statement.server.lower() != FILES or form not in FORMS or "directory" not in given:
        _refuse(statement, form, f"the server {statement.server} with these options")
    return _translated(statement, form, form, _OPTIONS)


def _with_options(statement: CreateStream, server: CreateServer) -> CreateStream:
    """Return the definition on a server of this kind; its own options override those of the server."""
    own = {name.lower() for name, _ in statement.options}
    pairs = zip(server.options, server.option_places, strict=True)
    more = [(option, place) for option, place in pairs if option[0].lower() not in own]
    return replace(
        statement,
        server=KINDS[server.type.lower()],
        options=(*(option for option, _ in more), *statement.options),
        option_places=(*(place for _, place in more), *statement.option_places),
    )


def column_problems(columns: Iterable[ColumnDef]) -> Iterator[Problem]:
    """Yield problems (R207) with OPTIONS of columns: a column is found by its name, and has no other path."""
    for column in columns:
        for option, value in column.options:
            steps = value.removeprefix("$.").split(".")
            if option.lower() == "path" and steps == [column.name]:
                continue
            what = f"{option} {literal(value)} of the column {column.name} is not supported"
            hint = "Leave OPTIONS of the column out; it is found by its name."
            if option.lower() == "path" and all(map(str.isidentifier, steps)):
                hint = f"Call the column {steps[0]}, and leave its OPTIONS out; a view may rename it."
                if steps[1:]:
                    inner = "".join(f"STRUCT<{step}: " for step in steps[1:])
                    kind = f"{inner}{column.type}{'>' * len(steps[1:])}"
                    hint = f"Declare {steps[0]} {kind}, and select {'.'.join(steps)} AS {column.name}."
            yield Problem("R207", what, column.place, hint)


def _translated(
    statement: CreateStream, using: str, form: str, translations: Mapping[str, Callable[[str], Translated]]
) -> CreateStream:
    options: list[tuple[str, str]] = []
    places: list[OptionPlace] = []
    for (name, value), place in zip(statement.options, statement.option_places, strict=True):
        try:
            option = translations[name.lower()](value)
        except (KeyError, ValueError):
            _refuse(statement, form, f"{name} {literal(value)}")
        if option is not None:
            options.append(option)
            places.append(place)
    return replace(statement, using=using, options=tuple(options), option_places=tuple(places), server=None)


def _of_topic(given: Mapping[str, str]) -> Mapping[str, Callable[[str], Translated]]:
    """Return the translations of a topic's options; a topic to write to has a FORMATTER."""
    form = lambda value: ("format", value.lower()) if value.lower() == "json" else _nothing("json")(value)  # noqa: E731
    return {
        "topic": _named("topic" if "formatter" in given else "subscribe"),
        "seed_brokers": _named("kafka.bootstrap.servers"),
        "bootstrap.servers": _named("kafka.bootstrap.servers"),
        "parser": form,
        "row_path": _nothing("$"),
        "character_encoding": _nothing("utf-8", "utf8"),
        "formatter_include_rowtime": _with_rowtime,
        "max_poll_records": _nothing(),  # how many records come at once, and how long to wait for them
        "poll_timeout": _nothing(),
        "formatter": form,
        "starting_time": lambda value: (
            ("startingOffsets", value.lower())
            if value.lower() in ("earliest", "latest")
            else _nothing("earliest")(value)
        ),
    }


def _refuse(statement: CreateStream, form: str, what: str) -> NoReturn:
    """Raise R207, with an example of the definition."""
    shown, least, table = form if form in FORMS else "csv", {"path": "/data/in"}, _OPTIONS
    if (statement.server or "").lower() in TOPICS:
        given = {name.lower(): value for name, value in statement.options}
        place = {"topic": "topic"} if "formatter" in given else {"subscribe": "topic", "startingOffsets": "latest"}
        shown, table = "kafka", _of_topic(given)
        least = {"kafka.bootstrap.servers": "host:9092", **place, "format": "json"}
    options_known = dict(
        option_known for option in statement.options if (option_known := _known(option, table)) is not None
    )
    options = ", ".join(f"{name} {literal(value)}" for name, value in {**least, **options_known}.items())
    example = f"CREATE STREAM {statement.name.text} (…) USING {shown} OPTIONS ({options})"
    if any(name.lower() == "skip_header" for name, _ in statement.options):
        example += "; with header 'true', the columns go by the names in the first line"
    problem = f"{what} is not supported: rowtime reads and writes formats, not servers"
    raise refuse("R207", problem, f"Write {example}.", statement.name.place)


def _known(option: tuple[str, str], table: Mapping[str, Callable[[str], Translated]]) -> Translated:
    name, value = option
    try:
        return table[name.lower()](value)
    except (KeyError, ValueError):
        return None


def _named(name: str) -> Callable[[str], Translated]:
    return lambda value: (name, value)


def _nothing(*values: str) -> Callable[[str], Translated]:
    """Return a translation to nothing for an option without effect at these values; others are refused."""

    def check(value: str) -> Translated:
        if values and value.lower() not in values:
            raise ValueError(value)
        return None

    return check


def _with_rowtime(value: str) -> Translated:
    """Translate the option: a sink writes ROWTIME as a column, unless the option is false."""
    return ("rowtime.column", "") if value.lower() == "false" else _nothing("true")(value)


def _glob(regex: str) -> Translated:
    """Return the glob that matches the same names as a simple regular expression."""
    parts, at = [], 0
    while at < len(regex):
        match = _REGEX.match(regex, at)
        if match is None:
            raise ValueError(regex)
        parts.append(match[1] or match[2] or {".*": "*", ".": "?"}[match[0]])
        at = match.end()
    return "pathGlobFilter", "".join(parts)


_OPTIONS: Final[Mapping[str, Callable[[str], Translated]]] = {
    "directory": _named("path"),
    "parser": _nothing(*FORMS),
    "formatter": _nothing(*FORMS),
    "separator": _named("sep"),
    "quote_character": _named("quote"),
    "character_encoding": _named("encoding"),
    "filename_pattern": _glob,
    "skip_header": _nothing("false"),  # rowtime finds columns by the names in a header, SQLstream by position
    "write_header": lambda value: ("header", value.lower()),
    "static_files": lambda value: (ENDS, "true") if value.lower() == "true" else _nothing("false")(value),
    "row_separator": _nothing("\n", "\\n"),
    "row_path": _nothing("$"),
    "formatter_include_rowtime": _with_rowtime,
}
