"""The crash harness tells what differs from the undisturbed run."""

from __future__ import annotations

from reliability.crash.inside import Tally


def test_what_differs_is_a_loss() -> None:
    tally = Tally()
    tally.check({"log": ["a"], "adds up": True}, {"log": ["a"], "adds up": True}, "here")
    assert not tally.losses
    tally.check({"log": ["a"]}, {"log": ["a", "b"]}, "there")
    tally.check({"totals": {}, "adds up": False}, {"totals": {}, "adds up": False}, "everywhere")
    assert [loss.split(":")[0] for loss in tally.losses] == ["there", "everywhere"]
