"""Object stores: a folder of a bucket, with the methods of a ``Path`` that a checkpoint needs.

An object appears whole or not at all, is there for every reader once it is written, and can be created if it is absent.
Nothing can be locked, renamed or appended to. So who may change what is decided by the journal (semantics 14.3), which
a bucket asks before it replaces an object or removes what a crash has left: its ``guard``.
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
TRIES: Final = 5  # of a request whose answer leaves open what has become of it, and of one that another has overtaken
_PAUSE: Final = 0.1  # seconds before the second try; twice as long before each further one
_WITHOUT_SUFFIX: Final = ("az:", "abfss:")  # stores that give no range from the end
_PART: Final = 1 << 16  # bytes that are read at once of an object of which only parts are read
REQUEST: Final = "30s"  # how long one request may take
RETRIED: Final = timedelta(seconds=30)  # how long a request is repeated that the store does not carry out
_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+([^/]*)/*(.*?)/*")


class Bucket:
    """A bucket as one process uses it. ``guard`` raises if the process must not change it any more.

    ``use``: what it has, in words, for messages: a checkpoint or a home. ``settings``: where it is and by what keys; a
    worker gets those of its driver.
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
        """The bucket in messages."""
        return f"{self.use}{': ' * bool(self.use)}the bucket {self.url}"

    @cached_property
    def store(self) -> Any:
        """The client; one for all places of a bucket."""
        return _client(self.url, self.settings.here)


@total_ordering
class ObjectPlace:
    """An object or a folder of a bucket, by its key."""

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
        """The last part of the key."""
        return self._pure.name

    @property
    def stem(self) -> str:
        """The name without its ending."""
        return self._pure.stem

    @property
    def suffix(self) -> str:
        """The ending of the name."""
        return self._pure.suffix

    @property
    def parent(self) -> ObjectPlace:
        """The folder."""
        return ObjectPlace(self.bucket, self.key.rpartition("/")[0])

    # -- what is there ----------------------------------------------------------------

    def exists(self) -> bool:
        """True if there is such an object."""
        return self.tag() is not None

    is_file = exists

    def is_dir(self) -> bool:
        """True if there is an object below this key."""
        with self._naming():
            return any(len(part) > 0 for part in self.bucket.store.list(self.key or None))

    def rglob(self, pattern: str = "*") -> Iterator[ObjectPlace]:
        """The objects below this key; ``pattern`` is that of their names."""
        with self._naming():
            found = [one["path"] for part in self.bucket.store.list(self.key or None) for one in part]
        places = (ObjectPlace(self.bucket, key) for key in found)
        return (place for place in places if fnmatch(place.name, pattern))

    def iterdir(self) -> Iterator[ObjectPlace]:
        """The objects and folders right below this key."""
        with self._naming():
            found = self.bucket.store.list_with_delimiter(self.key or None)
        keys = [*found["common_prefixes"], *(one["path"] for one in found["objects"])]
        return (ObjectPlace(self.bucket, key.strip("/")) for key in keys)

    def glob(self, pattern: str) -> Iterator[ObjectPlace]:
        """Those whose names fit."""
        return (place for place in self.iterdir() if fnmatch(place.name, pattern))

    def names(self, after: str = "") -> Iterator[str]:
        """The names below this key that come behind one, in order: a request for each 1,000."""
        with self._naming():
            found = self.bucket.store.list(self.key or None, offset=f"{self.key}/{after}")
            yield from (one["path"].removeprefix(f"{self.key}/") for part in found for one in part)

    def tail(self, most: int) -> tuple[bytes, int]:
        """The last bytes of the content, and how long it is; raises ``FileNotFoundError``."""
        with self._naming():
            if self.bucket.url.startswith(_WITHOUT_SUFFIX):
                return self._tail_by_ranges(most)
            found = self.bucket.store.get(self.key, options={"range": {"suffix": most}})
            return bytes(found.bytes()), found.meta["size"]

    def _tail_by_ranges(self, most: int) -> tuple[bytes, int]:
        """The same in two requests."""
        size = self.bucket.store.head(self.key)["size"]
        if not size:
            return b"", 0
        return bytes(self.bucket.store.get_range(self.key, start=max(0, size - most), end=size)), size

    def read_bytes(self) -> bytes:
        """The content; raises ``FileNotFoundError``."""
        with self._naming():
            return bytes(self.bucket.store.get(self.key).bytes())

    def opened(self) -> io.BufferedReader:
        """The content as a file of which only what is asked for is read; raises ``FileNotFoundError``."""
        from obstore import open_reader  # noqa: PLC0415 - an extra

        with self._naming():
            return io.BufferedReader(_Ranges(open_reader(self.bucket.store, self.key)), _PART)

    def size(self) -> tuple[int, datetime]:
        """How many bytes it has, and when it was written; raises ``FileNotFoundError``."""
        with self._naming():
            found = self.bucket.store.head(self.key)
        return found["size"], found["last_modified"]

    def tag(self) -> dict[str, str] | None:
        """What the version that is there is told by: on most stores a tag, on Google's a number."""
        try:
            with self._naming():
                found = self.bucket.store.head(self.key)
        except FileNotFoundError:
            return None
        return {name: found[name] for name in ("e_tag", "version") if found[name] is not None}

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The content as text."""
        return self.read_bytes().decode(encoding, errors)

    # -- changing it ------------------------------------------------------------------

    def create(self, data: bytes) -> None:
        """Create the object; raises ``FileExistsError`` if there is another one.

        If no answer comes, or the store says that there is one, what is there tells whether this request was carried
        out. The caller sees to it that nobody else creates the same content here.
        """
        for pause in _pauses():
            found = self._conditional(data, "create")
            if found is None:
                return
            try:
                there = self.read_bytes()
            except FileNotFoundError:  # the request was lost, or another one is under way that may fail
                error: Exception = found
            else:
                if there == data:
                    return
                raise FileExistsError(str(self)) from None
            time.sleep(pause)
        raise error

    def replace(self, data: bytes, judge: Callable[[], None] = lambda: None) -> None:
        """Replace the object, or create it, unless the guard of the bucket objects, or ``judge`` does.

        They are asked after the version was read that is replaced, so a process that has been succeeded replaces
        nothing that its successor has written, and what ``judge`` has read is what is replaced.
        """
        for pause in _pauses():
            tag = self.tag()
            self.bucket.guard()
            judge()
            found = self._conditional(data, tag or "create")
            if found is None:
                return
            error: Exception = found
            time.sleep(pause)
        raise error

    def upload(self, content: bytes | Path) -> None:
        """Write an object under a name that nobody else takes, or one whose loss does no harm."""
        with self._naming():
            self.bucket.store.put(self.key, content)

    def write_text(self, text: str, encoding: str = "utf-8") -> None:
        """`upload` a text."""
        self.upload(text.encode(encoding))

    def touch(self) -> None:
        """Let there be an object."""
        if not self.exists():
            self.upload(b"")

    def copy_to(self, target: ObjectPlace) -> None:
        """Give the content a second key in the same bucket."""
        with self._naming():
            self.bucket.store.copy(self.key, target.key)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Remove the object; most stores do not say whether it was there."""
        try:
            with self._naming():
                self.bucket.store.delete(self.key)
        except FileNotFoundError:
            if not missing_ok:
                raise

    # -- requests ---------------------------------------------------------------------

    def _conditional(self, data: bytes, mode: Any) -> Exception | None:
        """Write the object if a condition holds; the error if it does not, or if nobody knows."""
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
        """Errors of the store as ours: R581 to R583; ``FileNotFoundError`` for an object that is not there."""
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
        """What the store, or a library that asks it, says of a request, as ours: R581 to R583."""
        return failure_of(error, self.bucket.called, self.bucket.url, self.key)


class _Ranges(io.RawIOBase):
    """An object as a file."""

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
        found = bytes(self._reader.read(len(into)))
        into[: len(found)] = found
        return len(found)


Place = Path | ObjectPlace


def place_of(path: str | Path | ObjectPlace, what: str = "the checkpoint") -> Place:
    """The place that a path or a URL names, absolute.

    Raises ``Refused``: R211 for a scheme that nothing is known of, R580 without the library for object stores, R584 for
    a URL that has more than a bucket and a folder, R587 and R588 for a configuration that cannot be used.
    """
    if isinstance(path, ObjectPlace):
        return path
    found = _URL.fullmatch(str(path))
    if found is None or not on_store(path):
        return local(path, what)
    scheme, (_, bucket, key) = SCHEMES[found[1].lower()], found.groups()
    if not bucket or re.search(r"[?#]", str(path)) or ("@" in bucket and scheme != "abfss") or ":" in bucket:
        shown = re.sub(r"//?[^/@]*@", "//…@", re.sub(r"[?#].*", "?…", str(path)))
        form = "container@account.dfs.core.windows.net" if scheme == "abfss" else "bucket"
        hint = f"Write {scheme}://{form}/folder. {credentials(scheme)}"
        raise refuse("R584", f"{what} is {shown}, which is not a bucket and a folder", hint)
    _installed(what, str(path))
    return ObjectPlace(Bucket(f"{scheme}://{bucket}"), key)


def content_of(place: str | Place) -> str | Path | io.BufferedReader:
    """What a reader of files takes for a file or an object; of an object only what it asks for is read."""
    return place.opened() if isinstance(place, ObjectPlace) else place


def on_store(path: str | Path) -> bool:
    """True for the URL of an object store."""
    found = _URL.fullmatch(str(path))
    return found is not None and found[1].lower() in SCHEMES


def named(path: str) -> str | ObjectPlace:
    """The object whose text this is; the path of a file stays as it is."""
    scheme, colon, rest = path.partition("://")
    if path.startswith("/") or not colon:
        return path
    bucket, _, key = rest.partition("/")
    return ObjectPlace(Bucket(f"{SCHEMES[scheme]}://{bucket}"), key)


def below(path: Place, folder: Place) -> str:
    """A path from a folder on; one that is elsewhere stays as it is."""
    return str(path).removeprefix(f"{folder}/")


@lru_cache
def _client(url: str, settings: StoreSettings) -> Any:
    from obstore import store  # noqa: PLC0415 - an extra

    if url.startswith("memory:"):
        return store.MemoryStore()
    opened: Any = store.from_url
    options: dict[str, Any] = {"timeout": REQUEST, "allow_http": without_tls(url, settings)}
    given = settings.said() if url.startswith("s3:") else {}
    return opened(url, client_options=options, retry_config={"retry_timeout": RETRIED}, **given)


def _installed(what: str, path: str) -> None:
    try:
        import obstore  # noqa: F401, PLC0415 - an extra
    except ImportError:
        hint = "Install it with rowtime: pip install 'rowtime[stores]'."
        raise refuse("R580", f"{what} is {path}, and the library for object stores is not installed", hint) from None


def _pauses() -> Iterator[float]:
    return (_PAUSE * 2**number for number in range(TRIES))
