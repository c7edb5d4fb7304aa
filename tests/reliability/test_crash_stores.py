"""The crash harness of object stores restores the content of a bucket, and finds errors there."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reliability.crash import store_deaths
from reliability.crash.inside import Sample, Tally, kept_as, put_back, undisturbed
from reliability.crash.lakes import torn_versions
from reliability.crash.stores import KINDS, StoreCase, made, serving
from reliability.stores.proxy import LOSE, THROTTLE
from rowtime.core.stores import ObjectPlace, place_of
from rowtime.runtime.sinks.lake import LakeSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOTO = [*KINDS].index("delta tables and checkpoint on moto")


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder beside a bucket on a server; its name tells the Spark of the tests to read from S3."""
    folder = tmp_path_factory.mktemp("crash")
    with serving(["moto"], folder):
        yield folder


@pytest.fixture
def case(bucket: Path) -> StoreCase:
    (bucket / "live").mkdir(exist_ok=True)
    return StoreCase(MOTO, bucket / "live")


def objects(case: StoreCase) -> dict[str, bytes]:
    return {path.key: path.read_bytes() for path in place_of(case.url).rglob()}


def test_a_bucket_is_restored_together_with_the_folder(case: StoreCase, tmp_path: Path) -> None:
    place = place_of(case.url)
    for name in ("same", "changed", "gone", "folder/k=a b%2e"):
        (place / name).upload(name.encode())
    (case.folder / "file").write_text("1")
    image, before = kept_as(case, tmp_path / "image"), objects(case)
    (place / "changed").upload(b"2")
    (place / "gone").unlink()
    (place / "new").upload(b"3")
    (case.folder / "file").write_text("2")
    put_back(case, image)
    assert (objects(case), (case.folder / "file").read_text()) == (before, "1")
    assert made(case.told, case.folder) == case


def test_each_write_to_a_bucket_is_seen_before_it_happens_and_may_be_refused(case: StoreCase) -> None:
    place, seen = place_of(case.url) / "watched", list[tuple[str, bool]]()
    with case.watched(lambda what, path: seen.append((what, f"{case.key}/watched" in path and place.exists()))):
        place.upload(b"1")
        place.unlink()
    assert seen == [("PUT", False), ("DELETE", True)]
    befalling = iter((THROTTLE, LOSE))
    with case.deciding(lambda *_: next(befalling, "")):
        place.upload(b"2")
    assert (place.read_bytes(), next(befalling, "none is left")) == (b"2", "none is left")


def test_writes_to_disk_and_bucket_at_the_same_time_do_not_wait_for_each_other(case: StoreCase) -> None:
    place = place_of(case.url) / "together"
    disk = threading.Thread(target=(case.folder / "beside").write_text, args=("1",), daemon=True)

    def seen(what: str, path: str) -> None:
        if f"{case.key}/together" in path and what == "PUT":
            disk.start()
            disk.join(0.5)  # it is before its write now
            (case.folder / "inside").mkdir()

    bucket = threading.Thread(target=place.upload, args=(b"1",), daemon=True)
    with case.watched(seen):
        bucket.start()
        bucket.join(30)
        assert not bucket.is_alive()
        disk.join(30)
    assert (place.read_bytes(), (case.folder / "beside").read_text()) == (b"1", "1")


def refuses_what_is_there(place: ObjectPlace, data: bytes) -> None:
    if place._conditional(data, "create") is not None:
        raise FileExistsError(str(place))


def hands_nothing_over(_sink: LakeSink, _spark: Any, _node: Any, _batch: Any) -> None:
    pass


@pytest.mark.slow
def test_a_driver_that_does_not_know_its_own_entry_and_one_that_loses_rows_are_found(
    spark: SparkSession, case: StoreCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = undisturbed(case, spark, case.folder.parent / "kept", Sample(random.Random(0), 1_000))
    assert torn_versions(case.tables(), run.states)[1] == []

    def losses(decide: Callable[[str, str], str]) -> list[str]:
        tally = Tally()
        try:
            store_deaths._befallen(run, spark, tally, (1, decide), "here")
        except Exception as error:  # noqa: BLE001 - as the harness does
            tally.losses.append(f"{type(error).__name__} {error}")
        return tally.losses

    def lost_entry() -> Callable[[str, str], str]:
        told = iter([LOSE])  # tick 1 in epoch 2
        return lambda _method, path: next(told, "") if path.endswith("/journal/000000000003.json") else ""

    assert losses(lost_entry()) == []
    with monkeypatch.context() as patch:
        patch.setattr(ObjectPlace, "create", refuses_what_is_there)
        assert "took what it has written itself" in losses(lost_entry())[0]
    with monkeypatch.context() as patch:
        patch.setattr(LakeSink, "publish", hands_nothing_over)
        assert any("files is" in loss for loss in losses(lambda *_: ""))
