"""Pipelines whose checkpoint or tables are in an object store, each on a server of this machine behind a proxy.

The content of the bucket of a case is mirrored in its folder whenever that is copied, and restored from there. The
programs under test use the proxy, which examines each of their writes; the harness bypasses it.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from reliability.crash.cases import Case
from reliability.crash.lakes import APPENDED, KEYED, Delta, Tables, few_pumps, tables_of_catalog
from reliability.crash.shapes import SORTED
from reliability.crash.writes import Seen
from reliability.stores.proxy import Faults, faulty
from reliability.stores.servers import Server, start
from rowtime.client import stream_log
from rowtime.core.store_settings import StoreSettings
from rowtime.core.stores import Bucket, ObjectPlace, Place, place_of
from rowtime.runtime import segment_writer
from rowtime.runtime.iceberg_catalog import as_properties

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.engine import Engine

DELTA: Final = few_pumps(APPENDED["delta"], KEYED["delta"]).replace("{out}/", "{url}/")
ICEBERG: Final = few_pumps(APPENDED["iceberg"], KEYED["iceberg"])
LOGS: Final = f"""{SORTED}
CREATE STREAM merged (p STRING, k STRING, v BIGINT);
CREATE VIEW counted AS SELECT STREAM k, COUNT(*) AS v FROM sa GROUP BY FLOOR(sa.ROWTIME TO MINUTE), k;
CREATE PUMP p1 AS INSERT INTO merged SELECT STREAM 'p1' AS p, k, v FROM counted;
CREATE PUMP p2 AS INSERT INTO merged SELECT STREAM 'p2' AS p, k, v FROM sb;
"""
HOMES: Final = {"home and checkpoint on moto", "home on versitygw"}
"""The pipelines whose streams are in the bucket."""
KINDS: Final[Mapping[str, tuple[str, str, str]]] = {
    "delta tables and checkpoint on versitygw": ("versitygw", "{url}/check", DELTA),
    "delta tables and checkpoint on moto": ("moto", "{url}/check", DELTA),
    "iceberg tables, checkpoint on versitygw": ("versitygw", "{url}/check", ICEBERG),
    "iceberg tables and checkpoint on moto": ("moto", "{url}/check", ICEBERG.replace("file://{out}/", "{url}/")),
    "delta tables on azurite": ("azurite", "{folder}/check", DELTA),
    "home and checkpoint on moto": ("moto", "{url}/check", LOGS),
    "home on versitygw": ("versitygw", "{folder}/check", LOGS),
    "delta tables on google": ("google", "{folder}/check", DELTA),
}
"""By name: the server, where the checkpoint is, and the script."""
MIRROR: Final = "bucket"
FITTING: Final = segment_writer.SMALL
_SCHEMES: Final = {"azurite": "az", "google": "gs"}
Decide = Callable[[str, str], str]  # what befalls a write, by method and path


@dataclass
class Running:
    """A server with its proxy, and who decides on faults of the writes of each case."""

    server: Server
    faults: Faults
    address: str
    deciding: dict[str, Decide] = field(default_factory=dict)
    writes: Counter[str] = field(default_factory=Counter)  # of each case
    known: dict[str, tuple[str, str]] = field(default_factory=dict)  # of an object, its tag and the sum of its content

    def __post_init__(self) -> None:
        self.faults.before = self._decide

    @cached_property
    def client(self) -> Any:
        """Return a client that bypasses the proxy."""
        return self.server.client()

    def _decide(self, method: str, path: str) -> str:
        key = re.split(r"/crash-\w+/", path)[-1].split("/")[0]
        self.writes[key] += 1
        found = self.deciding.get(key)
        return found(method, path) if found else ""


_running: dict[str, Running] = {}


@contextmanager
def serving(names: Sequence[str], folder: Path) -> Iterator[None]:
    """Run these servers; processes that begin meanwhile find them by ``rowtime.toml`` and the environment."""
    with ExitStack() as stack:
        stack.callback(_running.clear)
        told = {"ROWTIME_CONFIG": str(folder / "rowtime.toml")}
        for name in names:
            server = start(name, f"crash-{name}")
            stack.callback(server.stop)
            address, faults = stack.enter_context(faulty(server.address))
            _running[name] = Running(server, faults, address)
            told |= server.environment(address)
        lines = [line for one in _running.values() for line in _as_toml(one.server.settings(one.address))]
        (folder / "rowtime.toml").write_text("\n".join([*lines, ""]))
        stack.callback(_say_again, {name: os.environ.get(name) for name in told})
        os.environ |= told
        yield


def _say_again(before: Mapping[str, str | None]) -> None:
    """Restore these variables of the environment to their values from before."""
    for name, value in before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def _as_toml(settings: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for bucket, told in settings.items():
        yield f'[stores."{bucket}"]'
        yield from (f'{name} = "{value}"' for name, value in told.items())


@dataclass(frozen=True)
class StoreCase(Case):
    """One pipeline with data in a bucket, in a folder there that has the name of its own."""

    tears: ClassVar[bool] = False  # an object is there whole or not at all

    @property
    def name(self) -> str:
        return [*KINDS][self.number % len(KINDS)]

    @property
    def told(self) -> str:
        return f"store {self.number}"

    @property
    def check(self) -> Place:
        return place_of(KINDS[self.name][1].format(url=self.url, folder=self.folder))

    @property
    def home(self) -> Place:
        return place_of(f"{self.url}/home") if self.name in HOMES else super().home

    @property
    def key(self) -> str:
        """The name of its folder in the bucket."""
        return hashlib.sha256(str(self.folder).encode()).hexdigest()[:12]

    @property
    def url(self) -> str:
        """The URL of its folder in the bucket."""
        server = KINDS[self.name][0]
        return f"{_SCHEMES.get(server, 's3')}://crash-{server}/{self.key}"

    def script(self) -> str:
        return KINDS[self.name][2].format(url=self.url, out=self.folder / "out")

    def engine(self, spark: SparkSession | None) -> Engine:
        segment_writer.SMALL = 0 if self._tasks_write else FITTING
        return super().engine(spark)

    @property
    def _tasks_write(self) -> bool:
        """Return True for every other pipeline: Spark's tasks do all reading and writing; only drivers know Azure."""
        return sum(divmod(self.number, len(KINDS))) % 2 == 1 and self.url.startswith("s3:")

    @property
    def has_tables(self) -> bool:
        return self.name not in HOMES

    def tables(self) -> Tables:
        if not self.has_tables:
            return {}
        if "iceberg" in self.name:
            return tables_of_catalog(self.folder / "out", self._lake)
        bucket = Bucket(self.url.rpartition("/")[0])
        bucket.store = self.on.client
        place = ObjectPlace(bucket, self.key)
        return {name: Delta(place / name, self.on.server.delta()) for name in ("rows", "latest")}

    @property
    def _lake(self) -> dict[str, str]:
        if "{url}/lake" not in KINDS[self.name][2]:
            return {}
        [told] = self.on.server.settings().values()
        return {"warehouse": f"{self.url}/lake", **as_properties(StoreSettings(**told))}

    # -- the bucket -------------------------------------------------------------------

    @property
    def on(self) -> Running:
        """The server, for the harness."""
        return _running[KINDS[self.name][0]]

    def pull(self) -> None:
        mirror, there = self.folder / MIRROR, self._there()
        for path in mirror.rglob("*"):
            if path.is_file() and f"{self.key}/{path.relative_to(mirror)}" not in there:
                path.unlink()
        for key, tag in there.items():
            path = mirror / key.removeprefix(f"{self.key}/")
            if self.on.known.get(key, ("", ""))[0] != tag or not path.exists():
                with suppress(FileNotFoundError):  # others have removed it; or it is a folder of Arrow's, `key/`
                    data = bytes(self.on.client.get(key).bytes())
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(data)
                    self.on.known[key] = (tag, _sum(data))

    def push(self) -> None:
        stream_log._buckets.clear()  # noqa: SLF001 - a log goes back to what it was, which no reader expects
        mirror, there = self.folder / MIRROR, self._there()
        wanted = {f"{self.key}/{path.relative_to(mirror)}": path for path in mirror.rglob("*") if path.is_file()}
        for key in there.keys() - wanted.keys():
            self.on.client.delete(key)
        for key, path in wanted.items():
            data = path.read_bytes()
            if self.on.known.get(key) != (there.get(key), _sum(data)):
                self.on.client.put(key, data)
                self.on.known[key] = (_tag(self.on.client.head(key)), _sum(data))

    def _there(self) -> dict[str, str]:
        """Return the tags of its objects, by their keys."""
        return {one["path"]: _tag(one) for part in self.on.client.list(self.key) for one in part}

    @contextmanager
    def watched(self, seen: Seen) -> Iterator[threading.RLock]:
        with super().watched(seen) as turn:

            def decide(method: str, path: str) -> str:
                with turn:
                    seen(method, path)
                return ""

            with self.deciding(decide):
                yield turn

    @contextmanager
    def deciding(self, decide: Decide) -> Iterator[None]:
        """Call ``decide`` before each write of the case to its bucket: it returns the fault."""
        self.on.deciding[self.key] = decide
        try:
            yield
        finally:
            del self.on.deciding[self.key]


def made(told: str, folder: Path) -> Case:
    """Return the case that ``told`` describes."""
    kind, _, number = told.rpartition(" ")
    return StoreCase(int(number), folder) if kind else Case(int(number), folder)


def _tag(about: Mapping[str, Any]) -> str:
    return str(about["e_tag"]).strip('"')


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
