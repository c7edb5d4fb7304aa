"""The home: definitions and logs of named streams, for all processes; a folder on a disk or in a bucket.

    <home>/streams/<name>.json   the definition of a stream, as text
    <home>/logs/<name>/          its rows and bounds (``stream_log``, ``home_logs``)
    <home>/starts/ what running first starts change (``starts``)

A definition is plain JSON: ``{"columns": [{"name", "type", "nullable"}, ...], "format": null or a Spark format,
"options": {...}, "sum": a checksum}``; the type is Spark SQL's text.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any, Final

from rowtime.client.file_names import escape, unescape
from rowtime.client.home_logs import logs_of
from rowtime.client.home_users import dropping, replacing
from rowtime.client.log_folder import PRIVATE
from rowtime.client.starts import settle_all
from rowtime.core.errors import Failure, Problem, refuse
from rowtime.core.machine import limit_of
from rowtime.core.shared_paths import sync, usable
from rowtime.core.stores import ObjectPlace, Place, listed, place_of

DEFAULT_HOME: Final = ".rowtime"


class Home:
    """The definitions of named streams, and where their logs are.

    Names are case-insensitive. Nothing is created before the first definition is written or ``create`` is called;
    folders on a disk are private to their owner (mode 0700). Raises what `place_of` does for an invalid path or URL.
    """

    def __init__(self, path: Place | str | None = None) -> None:
        self.path = place_of(path or os.environ.get("ROWTIME_HOME") or DEFAULT_HOME, "the home")
        if isinstance(self.path, ObjectPlace):
            self.path.bucket.use = f"the home {self.path}"
        self.logs = logs_of(self.path)

    def __repr__(self) -> str:
        return f"Home({str(self.path)!r})"

    @property
    def _definitions(self) -> Place:
        return self.path / "streams"

    def _definition_path(self, name: str) -> Place:
        return self._definitions / f"{escape(name.lower())}.json"

    def log_path(self, name: str) -> Place:
        """Return where the log of a stream is or would be; defined or not, existing or not."""
        return self.logs.path(name)

    def create(self) -> None:
        """Create missing parts of the directory, private to its owner; a bucket has no directories."""
        if isinstance(self.path, ObjectPlace):
            return
        with usable(self.path, "Make it writable, or name another: --home or ROWTIME_HOME."):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            for directory in (self.path, self.path / "streams", self.path / "logs"):
                if not directory.is_dir():
                    directory.mkdir(mode=PRIVATE, exist_ok=True)
                    sync(directory.parent)

    def define(self, name: str, definition: Mapping[str, Any], replace: bool = False) -> None:  # noqa: FBT001, FBT002
        """Write a definition; an equal one changes nothing.

        Raises ``Refused`` (R203) if the name has a different definition, unless ``replace``. Readers see the old
        definition or the new one, never a part.
        """
        path = self._definition_path(name)
        wanted = json.loads(json.dumps(definition))
        with _reaching(self.path):
            self.create()
            if not replace:
                self._settle()
            written = _written(path, text_of(wanted), replace=replace)
            if not written and self.defined(name) != wanted:
                raise refuse(
                    "R203",
                    f"the stream {name} exists in {self.path} with a different definition",
                    "Write CREATE OR REPLACE STREAM, which changes it for other scripts too. Or use another home, or "
                    "another name.",
                )

    def definition(self, name: str) -> dict[str, Any] | None:
        """Return the definition of a stream, or ``None``; ``Failure`` (R501) if it is unreadable.

        A definition by a start that died before its first tick does not count.
        """
        self._settle()
        return self.defined(name)

    def defined(self, name: str) -> dict[str, Any] | None:
        """Return the present definition, whether or not the start that wrote it has died."""
        path = self._definition_path(name)
        try:
            return definition_of(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise _unreadable(path, error, _DAMAGED) from error
        except OSError as error:
            raise Failure(limit_of(error, f"{path} cannot be used") or _unreadable(path, error).problems[0]) from error

    def names(self) -> list[str]:
        """Return the names of all defined streams, lower-cased, sorted."""
        self._settle()
        with _reaching(self.path):
            return sorted(unescape(path.stem) for path in listed(self._definitions, "[!.]*.json"))

    def elsewhere(self, name: str) -> str:
        """Return a hint which nearby home defines a stream, if this one defines none; or nothing."""
        return near(self.path, DEFAULT_HOME, name) if isinstance(self.path, Path) and not self.names() else ""

    def stray(self, names: Iterable[str]) -> Problem | None:
        """Return a warning (R218) if this home is empty and a nearby one defines one of these streams."""
        return stray(self.path, DEFAULT_HOME, names) if isinstance(self.path, Path) and not self.names() else None

    def replaced(
        self, definitions: Mapping[str, Mapping[str, Any]], drops: Collection[str], checkpoint: Place | str
    ) -> list[Problem]:
        """Return warnings (R223) about the pipelines whose streams these definitions replace, or which are dropped.

        ``checkpoint``: that of the script that has the definitions. A home in a bucket has no checkpoints to look at.
        """
        own = place_of(checkpoint)
        if not (isinstance(self.path, Path) and isinstance(own, Path)):
            return []
        present = {name: before for name in (*definitions, *drops) if (before := self.definition(name)) is not None}
        problems = [
            replacing(self.path, name, own)
            for name, new in definitions.items()
            if name in present and _lasting(present[name]) != _lasting(new)
        ]
        problems += [
            dropping(self.path, name, own, log=present[name].get("format") is None) for name in drops if name in present
        ]
        return [problem for problem in problems if problem is not None]

    def drop(self, name: str) -> bool:
        """Remove a stream: its definition and its log. Return True if there was a definition.

        Without the log, a stream defined again under the name starts empty.
        """
        path = self._definition_path(name)
        with _reaching(self.path):
            defined = path.exists()
            path.unlink(missing_ok=True)
            self.remove_log(name)
        return defined

    def restore(self, name: str, definition: Mapping[str, Any] | None) -> None:
        """Restore the definition of a stream; ``None`` removes it."""
        if definition is not None:
            self.define(name, definition, replace=True)
            return
        with _reaching(self.path):
            self._definition_path(name).unlink(missing_ok=True)

    def remove_log(self, name: str) -> None:
        """Remove the log of a stream, if it has one."""
        with _reaching(self.path):
            self.logs.remove(name)

    def _settle(self) -> None:
        """Undo the changes of starts that died before they succeeded."""
        with _reaching(self.path):
            settle_all(self)


def _lasting(definition: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return a definition without what ALTER STREAM sets, as it is stored."""
    return {**json.loads(json.dumps(definition)), "idle_after": None}


def _written(path: Place, text: str, *, replace: bool) -> bool:
    """Write a definition, durably; return False if there is one that must not be replaced."""
    if isinstance(path, ObjectPlace):
        return _put(path, text.encode(), replace=replace)
    with _staged(path.parent, text) as staged:
        written = bool(staged.replace(path)) if replace else _create(staged, path)
    sync(path.parent)
    return written


def _put(path: ObjectPlace, data: bytes, *, replace: bool) -> bool:
    try:
        path.replace(data) if replace else path.create(data)
    except FileExistsError:
        return False
    return True


def _create(staged: Path, path: Path) -> bool:
    """Give the staged file its name unless that is taken: atomic, unlike a check before."""
    try:
        os.link(staged, path)
    except FileExistsError:
        return False
    return True


@contextmanager
def _staged(directory: Path, text: str) -> Iterator[Path]:
    """Yield a durable file under a hidden name; it is removed afterwards unless it was renamed."""
    descriptor, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=directory)
    staged = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        yield staged
    finally:
        staged.unlink(missing_ok=True)


@contextmanager
def _reaching(home: Place) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problem = limit_of(error, f"{home} cannot be used")
        raise (_unreadable(home, error) if problem is None else Failure(problem)) from error


_DAMAGED = "Restore the file from a copy; or delete it, and start the script that defines the stream."


def _unreadable(path: Place, why: object, hint: str = "") -> Failure:
    return Failure(Problem("R501", f"{path} cannot be used: {why}", hint=hint))


MOST: Final = 100  # sibling folders that are searched


# -- nearby homes

# The default home is `.rowtime` in the working directory. So a command in another folder of the same project finds an
# empty home. It then names a nearby home that has streams.


def near(home: Path, folder: str, name: str) -> str:
    """Return a hint which nearby home defines a stream; any stream, if ``name`` is empty. Empty if there is none.

    ``folder``: the default name of a home. Homes in the folders above and in those directly below are nearby.
    """
    nearest = _nearest(home, folder, name)
    return f"The home {nearest} defines {'it' if name else 'streams'}: {_option(nearest)}." if nearest else ""


def stray(home: Path, folder: str, names: Iterable[str]) -> Problem | None:
    """Return a warning if a nearby home defines one of the streams that a script defines in this home, which is empty.

    Only for the default home: another one is named on purpose.
    """
    if home.absolute() != Path.cwd() / folder:
        return None
    for name in names:
        if nearest := _nearest(home, folder, name):
            what = f"the home {home.absolute()} is new, and the home {nearest} already defines {name}"
            return Problem("R218", what, hint=f"If you meant that one: {_option(nearest)}.", warns=True)
    return None


def _nearest(home: Path, folder: str, name: str) -> Path | None:
    file = f"{escape(name.lower())}.json" if name else "*.json"
    return next((near for near in _homes(folder) if near != home.absolute() and _defines(near, file)), None)


def _option(home: Path) -> str:
    """Return how a command and a program name a home, ready to be copied."""
    return f"--home {quote(str(home))}, or home={json.dumps(str(home), ensure_ascii=False)} in Python"


def _homes(folder: str) -> Iterator[Path]:
    current = Path.cwd()
    yield from (parent / folder for parent in current.parents)
    try:
        names = sorted(entry.name for entry in os.scandir(current) if entry.is_dir())
    except OSError:
        return
    yield from (current / name / folder for name in names[:MOST])


def _defines(home: Path, name: str) -> bool:
    """Return True if a readable home has a stream with this file name."""
    try:
        return any((home / "streams").glob(name))
    except OSError:
        return False


# A type, a union of types, [Wanted], (Wanted, …) or {member: Wanted}: a name with ? may be missing, * is any name.
Wanted = Any

_SHAPE: Final[Mapping[str, Wanted]] = {
    "kind": str,
    "start": str,
    "stop?": str | None,
    "by?": str | None,
    "adjusts?": bool,
    "rows?": int | None,
    "every?": int | None,
    "delay?": int,
    "imports?": str | None,
    "resolution?": str | None,
    "beyond?": int | None,
    "fields?": [str],
}
_EVENT_TIME: Final[Mapping[str, Wanted]] = {
    "column": str,
    "unit?": str | None,
    "lag?": int,
    "gap?": int,
    "mode?": str,
    "beyond?": int | None,
}
DEFINITION: Final[Mapping[str, Wanted]] = {
    "columns": [{"name": str, "type": str, "nullable?": bool}],
    "format?": str | None,
    "options?": {"*": str},
    "idle_after?": int | None,
    "checks?": [str],
    "orders?": [(str, str, str)],
    "early?": int | None,
    "resync?": int,
    "ahead?": int | None,
    "event_time?": _EVENT_TIME,
    "shape?": _SHAPE,
}

_SEAL: Final = re.compile(r',\s*"sum": "([0-9a-f]{8})"\s*\}\s*')


def text_of(definition: Mapping[str, Any]) -> str:
    """Return the text of a definition's file."""
    body = json.dumps(definition, indent=2, ensure_ascii=False).removesuffix("\n}")
    return f'{body},\n  "sum": "{zlib.crc32(body.encode()):08x}"\n}}'


def definition_of(text: str) -> dict[str, Any]:
    """Return the definition in a file; one of an older version has no checksum. Raises ``ValueError``."""
    content = json.loads(text)
    if isinstance(content, dict) and (given := content.pop("sum", None)) is not None:
        seal = _SEAL.fullmatch(text, max(0, text.rfind(",")))
        if seal is None or f"{zlib.crc32(text[: seal.start()].encode()):08x}" != given:
            raise ValueError("it has changed since rowtime wrote it: its checksum differs")
    if wrong := fault(content):
        raise ValueError(wrong)
    return dict(content)


def fault(value: object, wanted: Wanted = DEFINITION, at: str = "the definition") -> str:
    """Return the first fault; empty if there is none."""
    if isinstance(wanted, Mapping):
        return _fault_of_members(value, wanted, at)
    if isinstance(wanted, list | tuple):
        if not isinstance(value, list) or (isinstance(wanted, tuple) and len(value) != len(wanted)):
            return f"{at} is not a list{f' of {len(wanted)}' if isinstance(wanted, tuple) else ''}"
        parts = wanted if isinstance(wanted, tuple) else wanted * len(value)
        faults = (
            fault(element, part, f"{at}[{n}]") for n, (element, part) in enumerate(zip(value, parts, strict=True))
        )
        return next(filter(None, faults), "")
    fits = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
    return "" if fits and _is_text(value) else f"{at} is {value!r:.60}"


def _is_text(value: object) -> bool:
    """Return False for a string that no file can hold: half of a UTF-16 pair."""
    return not isinstance(value, str) or not any("\ud800" <= letter <= "\udfff" for letter in value)


def _fault_of_members(value: object, wanted: Mapping[str, Wanted], at: str) -> str:
    if not isinstance(value, dict):
        return f"{at} is not an object"
    wanted = dict.fromkeys(value, wanted["*"]) if "*" in wanted else wanted
    names = {key.rstrip("?"): key for key in wanted}
    odd = next((key for key in value if key not in names or not _is_text(key)), None)
    missing = next((name for name, key in names.items() if name == key and name not in value), None)
    if odd is not None or missing is not None:
        return f"{at} has no {missing}" if missing else f"{at} has {odd!r:.60}, which this version does not know"
    return next(filter(None, (fault(part, wanted[names[key]], f"{at}: {key}") for key, part in value.items())), "")
