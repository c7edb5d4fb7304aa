"""Names of source files: paths of a file system, or URLs of a store, in the form for Arrow and Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from rowtime.core.stores import ObjectPlace, content_of, named
from rowtime.runtime.spark_paths import for_spark, url_for_spark
from rowtime.runtime.store_access import reach

S = TypeVar("S")
T = TypeVar("T")
DAMAGED: Final = (pa.ArrowException, OSError, EOFError, UnicodeDecodeError)
"""Errors for a file that cannot be read; the last one if a name in a footer is not text."""
COMPRESSED: Final = (".bz2", ".deflate", ".gz", ".lz4", ".lzo", ".snappy", ".xz", ".zst")
AT_ONCE: Final = 16  # requests to a store
_FOOTERS: Final = 1_024  # of files in stores, where every look is a request


def parquet(path: str, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """Open a Parquet file, of which only requested parts are read; ``metadata``: its footer, if it is known.

    Raises ``OSError``, or a store's errors.
    """
    return pq.ParquetFile(content_of(named(path)), metadata=metadata)


def footer(path: str) -> pq.FileMetaData:
    """Return the footer of a Parquet file; objects, which a lake never changes, are read once. Raises as `parquet`."""
    return pq.read_metadata(path) if path.startswith("/") else _footer_of(path)


@lru_cache(_FOOTERS)
def _footer_of(url: str) -> pq.FileMetaData:
    return parquet(url).metadata


def has_size(path: str, size: int) -> bool:
    """Return True if an object exists with so many bytes."""
    place = named(path)
    assert isinstance(place, ObjectPlace)
    try:
        return place.size()[0] == size
    except FileNotFoundError:
        return False


def each(ask: Callable[[S], T], files: Sequence[S], *, stored: bool) -> Iterator[T]:
    """Yield ``ask`` of each file, several concurrently if they are ``stored`` as objects."""
    if not stored:
        yield from map(ask, files)
        return
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for first in range(0, len(files), AT_ONCE):
            yield from pool.map(ask, files[first : first + AT_ONCE])


def rows_of(paths: Sequence[str]) -> Iterator[int]:
    """Yield how many rows Parquet files have, by their footers."""
    return each(lambda path: int(footer(path).num_rows), paths, stored=in_store(paths))


def row_groups(paths: Sequence[str]) -> list[list[int]]:
    """Return how many rows each row group of Parquet files has."""
    footers = each(footer, paths, stored=in_store(paths))
    return [[of.row_group(n).num_rows for n in range(of.num_row_groups)] for of in footers]


def in_store(paths: Iterable[str]) -> bool:
    """Return True if some of the files are objects of a store."""
    return any(not path.startswith("/") for path in paths)


def as_pattern(path: str) -> str:
    """Return a file in the form for Spark's readers."""
    place = named(path)
    return for_spark(place)


def origin_of(path: str) -> str:
    """Return a file in the form of Spark's ``input_file_name()``, decoded."""
    place = named(path)
    return url_for_spark(place) if isinstance(place, ObjectPlace) else f"file://{place}"


def reach_all(spark: SparkSession, paths: Iterable[str], what: str) -> None:
    """Give a session access to the stores of some files. Raises ``Refused`` (R585)."""
    by_bucket: dict[str, Any] = {}
    for path in paths:
        if not path.startswith("/"):
            place = named(path)
            assert isinstance(place, ObjectPlace)
            by_bucket.setdefault(place.bucket.url, place)
    for place in by_bucket.values():
        reach(spark, place, what)
