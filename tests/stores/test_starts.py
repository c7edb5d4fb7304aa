"""First starts in progress with a home in a bucket: undone or kept as a whole, whichever process dies during that."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

import rowtime as rt
from rowtime.client import starts
from rowtime.client.home import Home
from rowtime.client.starts import Lease
from rowtime.client.stream_log import last
from rowtime.core.errors import Failure
from rowtime.core.stores import ObjectPlace, place_of
from rowtime.state.journal import Journal
from tests.client.test_starts import NAMES, NEW, OLD
from tests.deaths import Died

WRITES: Final = ("create", "replace", "upload", "unlink")


@pytest.fixture
def folder() -> str:
    """The URL of an empty folder."""
    return f"memory://{uuid.uuid4().hex}/f"


def home_of(folder: str) -> Home:
    """A home with three streams; each has a row of some writer."""
    home = Home(f"{folder}/home")
    for name in ("again", "gone", "kept"):
        home.define(name, OLD)
        with rt.writer(name, home=home, writer="someone") as log:
            log.insert([{"n": 1}])
    return home


def begun(home: Home) -> starts.Start:
    """A start that drops two streams, defines one of them again, and defines another; its script inserts rows."""
    check = f"{str(home.path).removesuffix('/home')}/check"
    start = {"checkpoint": check, "tick": -1, "runs": True, "writers": ["script"]}
    found = starts.begin(home, start, {"again": NEW, "new": NEW}, ["again", "gone"])
    for name in ("again", "new"):
        with rt.writer(name, home=home, writer="script") as log:
            log.insert([{"n": 2}, {"n": 3}])
    return found


def seen(home: Home) -> dict[str, Any]:
    """What the next process finds: definitions, and the number of items of each writer."""
    found: dict[str, Any] = {name: home.definition(name) for name in NAMES}
    return found | {f"{name}'s log": {w: e.end for w, e in last(home.log_path(name)).items()} for name in NAMES}


def commit(folder: str) -> None:
    Journal(place_of(f"{folder}/check/journal")).commit(0, {"control": {}})


@contextmanager
def dying(at: int) -> Iterator[list[str]]:
    """Die before a write of a store; return the writes. Writes of leases' threads do not count."""
    written: list[str] = []

    def counted(name: str, write: Callable[..., Any]) -> Callable[..., Any]:
        def act(place: ObjectPlace, *given: Any, **named: Any) -> Any:
            if len(written) == at:
                raise Died
            written.append(f"{name} {place.name}")
            return write(place, *given, **named)

        return act

    with pytest.MonkeyPatch.context() as patch:
        for name in WRITES:
            patch.setattr(ObjectPlace, name, counted(name, getattr(ObjectPlace, name)))
        yield written


@pytest.mark.parametrize("committed", [False, True])
def test_a_process_that_begins_or_settles_a_start_may_die(committed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def prepared(*, begins: bool) -> tuple[str, Home]:
        monkeypatch.setattr(starts, "LASTS", 60.0)
        folder = f"memory://{uuid.uuid4().hex}/f"
        home = home_of(folder)
        if begins:
            begun(home).lock.close()
            if committed:
                commit(folder)
        return folder, home

    monkeypatch.setattr(Lease, "_renew", lambda lease: lease._done.wait())
    _, home = prepared(begins=False)
    before = seen(home)
    _, home = prepared(begins=True)
    monkeypatch.setattr(starts, "LASTS", -1.0)  # the holder has died long ago
    after = seen(home)
    assert (after == before) is not committed
    assert after["gone"] == (None if committed else OLD)
    assert after["again's log"] == ({"script": 2} if committed else {"someone": 1})
    for begins in (True, False) if not committed else (True,):
        deaths = 0
        while True:
            folder, home = prepared(begins=begins)
            monkeypatch.setattr(starts, "LASTS", -1.0 if begins else 60.0)
            with dying(deaths):
                try:
                    home.names() if begins else begun(home).lock.close()
                except Died:
                    pass
                else:
                    break
            monkeypatch.setattr(starts, "LASTS", -1.0)
            assert seen(Home(f"{folder}/home")) == after, (begins, deaths)
            assert not [*Home(f"{folder}/home").path.rglob("*aside*")]
            assert not list((home.path / "starts").rglob("*.json"))
            deaths += 1
        assert deaths > 5


def test_a_start_counts_while_it_lives_and_records_how_it_ended(folder: str) -> None:
    home = home_of(folder)
    before = seen(home)
    for succeeded in (False, True):
        start = begun(home)
        alive = seen(home)
        assert (alive["again"], alive["new"], alive["gone"]) == (NEW, NEW, OLD)
        start.settle(succeeded=succeeded)
        assert (seen(home) == before) is not succeeded
    assert seen(home)["gone"] is None


def test_the_next_start_of_a_checkpoint_settles_the_one_before(folder: str) -> None:
    home = home_of(folder)
    before = seen(home)
    begun(home).lock.close()
    assert seen(home) != before, "for a minute nobody knows that it has died"
    starts.settle_all(home, place_of(f"{folder}/elsewhere"))
    assert seen(home) != before
    starts.settle_all(home, place_of(f"{folder}/check"))
    assert seen(home) == before


def test_a_start_that_counted_as_dead_does_not_continue(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "_RENEWED", 0.02)
    home = home_of(folder)
    before = seen(home)
    start = begun(home)
    starts.settle_all(home, place_of(f"{folder}/check"))
    assert seen(home) == before
    assert isinstance(start.lock, Lease)
    start.lock._renewer.join(10)
    with pytest.raises(Failure, match=r"R501 this start did not renew its lease(.|\n)*Start again: .* sent again"):
        start.settle(succeeded=True)
    start.settle(succeeded=False)
    assert seen(home) == before
    begun(home).settle(succeeded=True)
    after = seen(home)
    assert (after["again"], after["new"], after["new's log"]) == (NEW, NEW, {"script": 2})


def test_of_two_processes_that_take_a_lease_one_gets_it(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = place_of(f"{folder}/lease.json")
    assert isinstance(place, ObjectPlace)
    first = Lease.new(place, {"a": 1})
    assert Lease.of(place) is None
    monkeypatch.setattr(starts, "LASTS", -1.0)
    others: list[Lease | None] = []
    ask = ObjectPlace.replace

    def raced(one: ObjectPlace, *given: Any, **named: Any) -> None:
        monkeypatch.setattr(ObjectPlace, "replace", ask)
        others.append(Lease.of(place))
        ask(one, *given, **named)

    monkeypatch.setattr(ObjectPlace, "replace", raced)
    others.append(Lease.of(place))
    assert [lease is not None for lease in others] == [True, False]
    for lease in (first, *others):
        if lease is not None:
            lease.close()
