"""The operations of a place that a checkpoint uses: the same on a disk, in memory and on servers of stores."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from obstore.exceptions import GenericError, PermissionDeniedError

import rowtime as rt
from reliability.stores.servers import Server
from rowtime.core.errors import Failure, Refused
from rowtime.core.stores import ObjectPlace, Place, below, place_of
from rowtime.runtime.spark_paths import for_spark, url_for_spark
from rowtime.state.files import (
    append,
    check_sum,
    clear,
    copy_folder,
    link,
    make_folder,
    move,
    remove,
    sweep,
    write_new,
    write_over,
)
from rowtime.state.memory import read_table

STRANGE = "a b%2e é[x]{1}=y.json"


def names(folder: Place) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_of_many_concurrent_creators_of_a_file_one_succeeds(anew: Callable[[], Place]) -> None:
    make_folder(anew() / "journal")

    def attempt(number: int) -> bool:
        try:
            write_new(anew() / "journal" / "1", b"%d" % number)
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = [number for number, created in enumerate(pool.map(attempt, range(8))) if created]
    assert len(won) == 1
    assert (anew() / "journal" / "1").read_bytes() == b"%d" % won[0]


def test_a_file_is_replaced_moved_linked_and_removed(place: Place) -> None:
    make_folder(place / "a")
    one, two, three = place / "a" / STRANGE, place / "a" / "two", place / "b" / "three"
    write_over(one, b"1")
    write_over(one, b"12")
    append(one, b"3")
    assert one.read_bytes() == b"123"
    assert (one.exists(), two.exists(), (place / "a").is_dir(), (place / "b").is_dir()) == (True, False, True, False)
    check_sum(one, 0x884863D2)
    link(one, three)
    move(one, two)
    assert not one.exists()
    assert (two.read_text(), three.read_text()) == ("123", "123")
    assert names(place) == ["a", "b"]
    assert sorted(below(path, place) for path in place.rglob("t*")) == ["a/two", "b/three"]
    remove(two)
    remove(two)
    assert [path for path in (place / "a").glob("*") if path.exists()] == []


def test_a_missing_or_changed_file_is_reported_as_damage(place: Place) -> None:
    write_over(place / "one", b"123")
    for path, known, words in (
        (place / "one", 5, "checksum differs"),
        (place / "no", 5, "gone"),
        (place / "no", None, "gone"),
    ):
        with pytest.raises(Failure, match=f"R406.*{words}"):
            check_sum(path, known)
    check_sum(place / "one", None)
    with pytest.raises(FileNotFoundError):
        (place / "no").read_bytes()


def test_a_sweep_keeps_the_named_files(place: Place, tmp_path: Path) -> None:
    make_folder(place / "f")
    for name in ("one", "two", "three"):
        write_new(place / "f" / name, name.encode())
    sweep(place / "f", ("two",))
    assert names(place / "f") == ["two"]
    copy_folder(place / "f", tmp_path / "copy")
    assert (tmp_path / "copy" / "two").read_text() == "two"
    copy_folder(place / "none", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_nothing_is_replaced_or_removed_against_the_guard(stored: str) -> None:
    place = place_of(stored)
    assert isinstance(place, ObjectPlace)
    write_new(place / "one", b"1")

    def succeeded() -> None:
        raise InterruptedError

    place.bucket.guard = succeeded
    with pytest.raises(InterruptedError):
        write_over(place / "one", b"2")
    with pytest.raises(InterruptedError):
        clear([place / "one"])
    assert (place / "one").read_bytes() == b"1"


def test_an_overtaken_write_asks_the_guard_again(stored: str) -> None:
    place, other, asked = place_of(stored), place_of(stored), []
    assert isinstance(place, ObjectPlace)

    def overtake() -> None:
        asked.append(1)
        if len(asked) == 1:
            write_over(other / "one", b"other")

    place.bucket.guard = overtake
    write_over(place / "one", b"mine")
    assert (len(asked), (place / "one").read_bytes()) == (2, b"mine")


# -- faults -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("s3://key:secret@bucket/x", "R584"),
        ("s3://bucket/x?sig=secret", "R584"),
        ("s3://", "R584"),
        ("hdfs:///x", "R211"),
        ("dbfs:/x", "R211"),
    ],
)
def test_a_url_that_is_no_bucket_and_folder_is_refused_and_no_secret_shown(url: str, code: str) -> None:
    with pytest.raises(Refused) as refused:
        place_of(url)
    assert refused.value.problems[0].code == code
    assert "secret" not in str(refused.value)


def test_a_url_works_like_a_path_on_the_command_line(bucket: str) -> None:
    assert place_of(Path(bucket)) == place_of(bucket) == place_of(f"{bucket.replace('s3:', 's3a:')}/")
    assert str(place_of(bucket)) == bucket


OWN = {
    "s3://bucket": "AWS_ACCESS_KEY_ID",
    "gs://bucket": "GOOGLE_APPLICATION_CREDENTIALS",
    "az://bucket": "AZURE_STORAGE_ACCOUNT_KEY",
    "abfss://container@account.dfs.core.windows.net": "AZURE_STORAGE_ACCOUNT_KEY",
}


@pytest.mark.parametrize("url", OWN)
def test_a_hint_about_credentials_names_the_variables_of_its_store(url: str) -> None:
    place = place_of(f"{url}/x")
    assert isinstance(place, ObjectPlace)
    said = (
        PermissionDeniedError("403"),
        GenericError("Error performing GET http://169.254.169.254/latest/api/token in 1ms - HTTP error"),
    )
    hints = [place.failure(one).problems[0].hint for one in said]
    with pytest.raises(Refused) as refused:
        place_of(f"{url}/x?y")
    for hint in (*hints, refused.value.problems[0].hint):
        assert {name for name in OWN.values() if name in hint} == {OWN[url]}
        assert ("rowtime.toml" in hint) == url.startswith("s3:")
    assert f"Write {url}/folder" in refused.value.problems[0].hint


def test_bad_credentials_are_distinguished_from_a_store_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    with pytest.raises(Failure, match=r"R582 .*gs://absent, .*key\.json(.|\n)*GOOGLE_APPLICATION_CREDENTIALS"):
        (place_of("gs://absent/x") / "y").exists()
    (tmp_path / "key.json").write_text("{")
    with pytest.raises(Failure, match=r"R582 .*Unable to decode service account file"):
        (place_of("gs://absent/x") / "y").exists()
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "no key")
    with pytest.raises(Failure, match=r"R582 .*Invalid Access Key") as failed:
        (place_of("az://absent/x") / "y").exists()
    assert "no key" not in str(failed.value)


def test_a_missing_bucket_has_a_code(store: Server, stored: str) -> None:
    if store.is_s3:
        rt.configure_stores({"s3://rowtime-absent": store.settings()[store.bucket]})
    place = place_of(re.sub(r"(?<=://)[^/]+", "rowtime-absent", stored))
    for ask in (lambda: [*place.iterdir()], lambda: write_new(place / "x", b"1")):
        with pytest.raises(Failure, match=r"R581 the bucket (s3|gs|az)://rowtime-absent"):
            ask()


def test_a_table_on_a_store_is_read_like_one_on_a_disk(place: Place, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"v": [1, 2]}), tmp_path / "f.parquet")
    make_folder(place / "day=1")
    write_new(place / "day=1" / "f.parquet", (tmp_path / "f.parquet").read_bytes())
    assert read_table(place / "day=1" / "f.parquet").to_pydict() == {"v": [1, 2]}


def test_a_store_without_its_library_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(Refused, match=r"R580 .*s3://bucket/x") as refused:
        place_of("s3://bucket/x")
    assert "rowtime[stores]" in str(refused.value)


def test_spark_finds_a_place_by_its_own_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "me")
    for url, found in (
        ("s3://b/x", "s3a://b/x/[1]"),
        ("gs://b/x", "gs://b/x/[1]"),
        ("az://c/x", "abfss://c@me.dfs.core.windows.net/x/[1]"),
        ("abfss://c@me.dfs.core.windows.net/x", "abfss://c@me.dfs.core.windows.net/x/[1]"),
    ):
        place = place_of(url) / "[1]"
        assert isinstance(place, ObjectPlace)
        assert url_for_spark(place) == found
        assert for_spark(place) == found.replace("[", "\\[").replace("]", "\\]")
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME")
    for url in ("memory://b/x", "az://c/x"):
        place = place_of(url)
        assert isinstance(place, ObjectPlace)
        with pytest.raises(Refused, match="R585"):
            url_for_spark(place)
