"""Object stores: a folder in a bucket, with those methods of ``Path`` that a checkpoint needs.

An object appears whole or not at all, is visible to every reader once it is written, and can be created if absent.
Nothing can be locked, renamed or appended to. So the journal decides who may change what (semantics 14.3). A bucket
asks it, through its ``guard``, before it replaces an object or removes leftovers of a crash.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from fnmatch import fnmatch
from functools import cached_property, lru_cache, total_ordering
from pathlib import Path, PurePosixPath
from typing import Any, Final

from rowtime.core.background import Background
from rowtime.core.errors import Failure, refuse
from rowtime.core.shared_paths import local
from rowtime.core.store_answers import credentials, failure_of, lacks_bucket, unwritten
from rowtime.core.store_settings import StoreSettings, settings_of, without_tls

SCHEMES: Final = {"s3": "s3", "s3a": "s3", "gs": "gs", "az": "az", "abfss": "abfss", "memory": "memory"}
TRIES: Final = 5  # of a request whose outcome is unknown, or that another one has overtaken
_PAUSE: Final = 0.1  # seconds before the second try; twice as long before each further one
_WITHOUT_SUFFIX: Final = ("az:", "abfss:")  # stores that cannot read a range from the end
_PART: Final = 1 << 16  # bytes per read of an object that is read in parts
REQUEST: Final = "30s"  # how long one request may take
RETRIED: Final = timedelta(seconds=30)  # how long a failing request is repeated
_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+([^/]*)/*(.*?)/*")


class Bucket:
    """A bucket as one process uses it. ``guard`` raises if the process must not change it any more.

    ``use``: what it holds, for messages: a checkpoint or a home. ``settings``: its address and keys; a worker gets
    those of its driver.
    """

    def __init__(self, url: str, settings: StoreSettings | None = None) -> None:
        self.url = url
        self.settings = settings_of(url) if settings is None else settings
        self.guard: Callable[[], None] = lambda: None
        self.use, self.background = "", Background()

    def __reduce__(self) -> tuple[type[Bucket], tuple[str, StoreSettings]]:
        return Bucket, (self.url, self.settings)

    @property
    def called(self) -> str:
        """Return the name of the bucket in messages."""
        return f"{self.use}{': ' * bool(self.use)}the bucket {self.url}"

    @cached_property
    def store(self) -> Any:
        """Return the client; all places of a bucket share it."""
        return _client(self.url, self.settings.here)


@total_ordering
class ObjectPlace:
    """An object or a folder of a bucket, identified by its key."""

    def __init__(self, bucket: Bucket, key: str) -> None:
        self.bucket, self.key = bucket, key

    # -- the name ---------------------------------------------------------------------

    def __truediv__(self, name: str | PurePosixPath) -> ObjectPlace:
        return ObjectPlace(self.bucket, f"{self.key}/{name}".strip("/"))

    def __str__(self) -> str:
        return f"{self.bucket.url}/{self.key}"

    def __repr__(self) -> str:
        return f"ObjectPlace({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPlace) and str(self) == str(other)

    def __lt__(self, other: ObjectPlace) -> bool:
        return str(self) < str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def _pure(self) -> PurePosixPath:
        return PurePosixPath(self.key)

    @property
    def name(self) -> str:
        """Return the last part of the key."""
        return self._pure.name

    @property
    def stem(self) -> str:
        """Return the name without its suffix."""
        return self._pure.stem

    @property
    def suffix(self) -> str:
        """Return the suffix of the name."""
        return self._pure.suffix

    @property
    def parent(self) -> ObjectPlace:
        """Return the parent folder."""
        return ObjectPlace(self.bucket, self.key.rpartition("/")[0])

    # -- contents -------------------------------------------------------------------

    def exists(self) -> bool:
        """Return True if the object exists."""
        return self.tag() is not None

    is_file = exists

    def is_dir(self) -> bool:
        """Return True if there is an object below this key."""
        with self._naming():
            return any(len(part) > 0 for part in self.bucket.store.list(self.key or None))

    def rglob(self, pattern: str = "*") -> Iterator[ObjectPlace]:
        """Yield the objects below this key whose names match ``pattern``."""
        with self._naming():
            keys = [entry["path"] for part in self.bucket.store.list(self.key or None) for entry in part]
        places = (ObjectPlace(self.bucket, key) for key in keys)
        return (place for place in places if fnmatch(place.name, pattern))

    def iterdir(self) -> Iterator[ObjectPlace]:
        """Yield the objects and folders directly below this key."""
        with self._naming():
            listing = self.bucket.store.list_with_delimiter(self.key or None)
        keys = [*listing["common_prefixes"], *(entry["path"] for entry in listing["objects"])]
        return (ObjectPlace(self.bucket, key.strip("/")) for key in keys)

    def glob(self, pattern: str) -> Iterator[ObjectPlace]:
        """Yield the direct entries whose names match."""
        return (place for place in self.iterdir() if fnmatch(place.name, pattern))

    def names(self, after: str = "") -> Iterator[str]:
        """Yield the names below this key after ``after``, in order: one request per 1,000 names."""
        with self._naming():
            pages = self.bucket.store.list(self.key or None, offset=f"{self.key}/{after}")
            yield from (entry["path"].removeprefix(f"{self.key}/") for part in pages for entry in part)

    def tail(self, most: int) -> tuple[bytes, int]:
        """Return the last bytes of the content, and its length; raises ``FileNotFoundError``."""
        with self._naming():
            if self.bucket.url.startswith(_WITHOUT_SUFFIX):
                return self._tail_by_ranges(most)
            answer = self.bucket.store.get(self.key, options={"range": {"suffix": most}})
            return bytes(answer.bytes()), answer.meta["size"]

    def _tail_by_ranges(self, most: int) -> tuple[bytes, int]:
        """Return the same with two requests."""
        size = self.bucket.store.head(self.key)["size"]
        if not size:
            return b"", 0
        return bytes(self.bucket.store.get_range(self.key, start=max(0, size - most), end=size)), size

    def read_bytes(self) -> bytes:
        """Return the content; raises ``FileNotFoundError``."""
        with self._naming():
            return bytes(self.bucket.store.get(self.key).bytes())

    def opened(self) -> io.BufferedReader:
        """Open the content as a file that reads only the ranges asked for; raises ``FileNotFoundError``."""
        from obstore import open_reader  # noqa: PLC0415 - an extra

        with self._naming():
            return io.BufferedReader(_Ranges(open_reader(self.bucket.store, self.key)), _PART)

    def size(self) -> tuple[int, datetime]:
        """Return the size in bytes and the time of the write; raises ``FileNotFoundError``."""
        with self._naming():
            head = self.bucket.store.head(self.key)
        return head["size"], head["last_modified"]

    def tag(self) -> dict[str, str] | None:
        """Return what identifies the present version: a tag on most stores, a number on Google's."""
        try:
            with self._naming():
                head = self.bucket.store.head(self.key)
        except FileNotFoundError:
            return None
        return {name: head[name] for name in ("e_tag", "version") if head[name] is not None}

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the content as text."""
        return self.read_bytes().decode(encoding, errors)

    # -- changes --------------------------------------------------------------------

    def create(self, data: bytes) -> None:
        """Create the object; raises ``FileExistsError`` if another one exists.

        If no answer comes, or the store says that the object exists, its content tells whether this request was carried
        out. The caller makes sure that nobody else creates the same content here.
        """
        for pause in _pauses():
            conflict = self._conditional(data, "create")
            if conflict is None:
                return
            try:
                content = self.read_bytes()
            except FileNotFoundError:  # the request was lost, or a concurrent one may still fail
                error: Exception = conflict
            else:
                if content == data:
                    return
                raise FileExistsError(str(self)) from None
            time.sleep(pause)
        raise error

    def replace(self, data: bytes, judge: Callable[[], None] = lambda: None) -> None:
        """Replace the object, or create it, unless the guard of the bucket or ``judge`` objects.

        Both are called after the present version has been read. So a process that has a successor replaces nothing that
        the successor has written, and exactly the version that ``judge`` saw is replaced.
        """
        for pause in _pauses():
            tag = self.tag()
            self.bucket.guard()
            judge()
            conflict = self._conditional(data, tag or "create")
            if conflict is None:
                return
            error: Exception = conflict
            time.sleep(pause)
        raise error

    def upload(self, content: bytes | Path) -> None:
        """Write an object under a name that nobody else uses, or an object that may be lost without harm."""
        with self._naming():
            self.bucket.store.put(self.key, content)

    def write_text(self, text: str, encoding: str = "utf-8") -> None:
        """`upload` a text."""
        self.upload(text.encode(encoding))

    def touch(self) -> None:
        """Create the object, empty."""
        if not self.exists():
            self.upload(b"")

    def copy_to(self, target: ObjectPlace) -> None:
        """Copy the content to a second key in the same bucket."""
        with self._naming():
            self.bucket.store.copy(self.key, target.key)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Remove the object; most stores do not say whether it existed."""
        try:
            with self._naming():
                self.bucket.store.delete(self.key)
        except FileNotFoundError:
            if not missing_ok:
                raise

    # -- requests ---------------------------------------------------------------------

    def _conditional(self, data: bytes, mode: Any) -> Exception | None:
        """Write the object on a condition; return the error if it does not hold, or if the outcome is unknown."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError  # noqa: PLC0415 - an extra

        try:
            with self._naming():
                self.bucket.store.put(self.key, data, mode=mode, use_multipart=False)
        except (AlreadyExistsError, PreconditionError) as error:
            return unwritten(error, self.bucket.called, self.key)
        except Failure as failure:
            if failure.problems[0].code != "R583":
                raise
            return failure
        return None

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Translate errors of the store: R581 to R583; ``FileNotFoundError`` for a missing object."""
        from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError  # noqa: PLC0415 - an extra

        self.bucket.background.wait(self.key)
        try:
            yield
        except (AlreadyExistsError, PreconditionError):
            raise
        except (BaseError, FileNotFoundError) as error:
            if isinstance(error, FileNotFoundError) and not lacks_bucket(error):
                raise FileNotFoundError(str(self)) from None
            raise self.failure(error) from None

    def failure(self, error: Exception) -> Failure:
        """Translate an error of the store, or of a library that uses it: R581 to R583."""
        return failure_of(error, self.bucket.called, self.bucket.url, self.key)


class _Ranges(io.RawIOBase):
    """Reads an object as a file, by ranges."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, at: int, whence: int = 0) -> int:
        return int(self._reader.seek(at, whence))

    def tell(self) -> int:
        return int(self._reader.tell())

    def readinto(self, into: Any) -> int:
        block = bytes(self._reader.read(len(into)))
        into[: len(block)] = block
        return len(block)


Place = Path | ObjectPlace


def listed(folder: Place, pattern: str) -> Iterator[Place]:
    """Return the direct entries whose names match; none if there is no such folder.

    ``Path.glob`` also takes a folder that the user may not list for an empty one; this raises ``PermissionError``.
    """
    try:
        entries: list[Place] = [*folder.iterdir()]
    except FileNotFoundError:
        return
    yield from (path for path in entries if fnmatch(path.name, pattern))


def place_of(path: str | Path | ObjectPlace, what: str = "the checkpoint") -> Place:
    """Return the place that a path or a URL names, absolute.

    Raises ``Refused``: R211 for an unknown scheme, R580 without the library for object stores, R584 for a URL that has
    more than a bucket and a folder, R587 and R588 for a bad configuration.
    """
    if isinstance(path, ObjectPlace):
        return path
    match = _URL.fullmatch(str(path))
    if match is None or not on_store(path):
        return local(path, what)
    scheme, (_, bucket, key) = SCHEMES[match[1].lower()], match.groups()
    if not bucket or re.search(r"[?#]", str(path)) or ("@" in bucket and scheme != "abfss") or ":" in bucket:
        shown = re.sub(r"//?[^/@]*@", "//…@", re.sub(r"[?#].*", "?…", str(path)))
        form = "container@account.dfs.core.windows.net" if scheme == "abfss" else "bucket"
        hint = f"Write {scheme}://{form}/folder. {credentials(scheme)}"
        raise refuse("R584", f"{what} is {shown}, which is not a bucket and a folder", hint)
    _installed(what, str(path))
    return ObjectPlace(Bucket(f"{scheme}://{bucket}"), key)


def content_of(place: str | Place) -> str | Path | io.BufferedReader:
    """Return what a file reader needs for a file or an object; of an object, only the ranges it asks for are read."""
    return place.opened() if isinstance(place, ObjectPlace) else place


def on_store(path: str | Path) -> bool:
    """Return True for the URL of an object store."""
    match = _URL.fullmatch(str(path))
    return match is not None and match[1].lower() in SCHEMES


def named(path: str) -> str | ObjectPlace:
    """Return the object of a URL; the path of a file stays as it is."""
    scheme, colon, rest = path.partition("://")
    if path.startswith("/") or not colon:
        return path
    bucket, _, key = rest.partition("/")
    return ObjectPlace(Bucket(f"{SCHEMES[scheme]}://{bucket}"), key)


def below(path: Place, folder: Place) -> str:
    """Return a path relative to a folder; a path outside the folder stays as it is."""
    return str(path).removeprefix(f"{folder}/")


@lru_cache
def _client(url: str, settings: StoreSettings) -> Any:
    from obstore import store  # noqa: PLC0415 - an extra

    if url.startswith("memory:"):
        return store.MemoryStore()
    opened: Any = store.from_url
    options: dict[str, Any] = {"timeout": REQUEST, "allow_http": without_tls(url, settings)}
    given = settings.given() if url.startswith("s3:") else {}
    return opened(url, client_options=options, retry_config={"retry_timeout": RETRIED}, **given)


def _installed(what: str, path: str) -> None:
    try:
        import obstore  # noqa: F401, PLC0415 - an extra
    except ImportError:
        hint = "Install it with rowtime: pip install 'rowtime[stores]'."
        raise refuse("R580", f"{what} is {path}, but the library for object stores is not installed", hint) from None


def _pauses() -> Iterator[float]:
    return (_PAUSE * 2**number for number in range(TRIES))
