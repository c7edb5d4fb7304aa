"""The names of streams, tables and sinks in OpenLineage's naming of datasets: a namespace and a name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from rowtime.client.home import Home
from rowtime.core.stores import ObjectPlace, place_of


class Dataset(NamedTuple):
    """Its namespace and its name."""

    namespace: str
    name: str


def dataset_of(name: str, kind: str, given: Mapping[str, str], home: Home, job: Dataset) -> Dataset:
    """Return the dataset of a stream, table or sink of the plan by its format and options.

    Internal ones (functions, memory, DataFrames) are a part of the ``job``.
    """
    options = {option.lower(): value for option, value in given.items()}
    if kind == "log":
        return _at(str(home.log_path(options.get("stream", name))))
    if kind == "kafka":
        server = options.get("kafka.bootstrap.servers", "").partition(",")[0]
        return Dataset(
            f"kafka://{server}", options.get("topic") or options.get("subscribe") or options.get("stream", name)
        )
    if kind == "jdbc":
        return _of_database(options)
    if kind == "iceberg":
        where = options.get("catalog.uri") or options.get("catalog.warehouse") or options.get("catalog", "")
        return Dataset(f"iceberg://{_without_login(where)}", options.get("table", name))
    if "path" in options:
        return _at(options["path"])
    return Dataset(job.namespace, f"{job.name}/{name}")


def _at(path: str) -> Dataset:
    place = place_of(path)
    if isinstance(place, ObjectPlace):
        return Dataset(place.bucket.url, place.key)
    return Dataset("file", str(Path(path).absolute()))


def _of_database(options: Mapping[str, str]) -> Dataset:
    url = urlsplit(options.get("url", "").removeprefix("jdbc:"))
    scheme = {"postgresql": "postgres"}.get(url.scheme, url.scheme)
    parts = [url.path.strip("/"), options.get("dbtable", "")]
    return Dataset(f"{scheme}://{_without_login(url.netloc)}", ".".join(part for part in parts if part))


def _without_login(where: str) -> str:
    """Return a URL or a host without user, password, and query string."""
    before, slashes, rest = where.rpartition("://")
    host, slash, path = rest.partition("?")[0].partition("/")
    return f"{before}{slashes}{host.rpartition('@')[2]}{slash}{path}"
