"""The log of a command: written to standard error, as lines of text or of JSON, if requested."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Self

import typer

from rowtime.core.log import LOG
from rowtime.core.secrets import Secrets


class Level(StrEnum):
    """The least level that is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


LogLevel = Annotated[
    Level | None,
    typer.Option("--log-level", case_sensitive=False, help="Log to standard error at this level and above."),
]
LogJson = Annotated[bool, typer.Option("--log-json", help="Log as lines of JSON; default level: info.")]

_OF_EVERY_RECORD: Final = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"})


class LogTo:
    """Writes what rowtime logs to standard error for a while; without a level, nothing at all.

    ``secrets``, once they are known, are not written. For callers from Python, the logger is restored.
    """

    def __init__(self, level: Level | None, *, as_json: bool) -> None:
        self.secrets = Secrets()
        self._level = level or (Level.INFO if as_json else None)
        self._handler = logging.NullHandler() if self._level is None else _ToStandardError()
        self._handler.setFormatter(Lines(self) if as_json else Text(self))

    def __enter__(self) -> Self:
        self._before = LOG.level, LOG.propagate
        LOG.addHandler(self._handler)
        LOG.propagate = False
        if self._level is not None:
            LOG.setLevel(self._level.upper())
        return self

    def __exit__(self, *_: object) -> None:
        LOG.removeHandler(self._handler)
        LOG.setLevel(self._before[0])
        LOG.propagate = self._before[1]


class _ToStandardError(logging.StreamHandler[Any]):
    """Writes to the present standard error: the display may have replaced it, to stay below the lines."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr

    @stream.setter
    def stream(self, _: Any) -> None:
        """Ignore assignments."""


class Text(logging.Formatter):
    """One line per record: time (UTC), level and message; then the traceback, if there is one."""

    def __init__(self, to: LogTo) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._to = to

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802, ARG002 - logging's
        """Return the time as in JSON."""
        return _time(record)

    def format(self, record: logging.LogRecord) -> str:
        """Return the record without secrets."""
        return self._to.secrets.hide(super().format(record))


class Lines(Text):
    """One line of JSON per record: time, level, logger, message, its own attributes, and any traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record without secrets."""
        own = {name: value for name, value in vars(record).items() if name not in _OF_EVERY_RECORD}
        entry = {"time": _time(record), "level": record.levelname.lower(), "logger": record.name}
        entry |= {"message": record.getMessage(), **own}
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(self._hidden(entry), ensure_ascii=False)

    def _hidden(self, value: Any) -> Any:
        """Return a value without secrets, which JSON might escape."""
        if isinstance(value, Mapping):
            return {name: self._hidden(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [self._hidden(part) for part in value]
        return value if isinstance(value, int | float | None) else self._to.secrets.hide(str(value))


def _time(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"
