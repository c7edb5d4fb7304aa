"""Drivers that die while they write to a lake table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.deaths import Died, dying

if TYPE_CHECKING:
    from rowtime.runtime.engine import Engine
    from rowtime.runtime.sinks.lake import Ready


def dies_in(engine: Engine, log: type[Any], point: str, patch: pytest.MonkeyPatch) -> None:
    """Run one tick up to a point: one of the engine's, or one around the commits of the table's ``log``."""
    calls, real = [], log.commit

    def commit(self: Any, ready: Ready) -> None:
        calls.append(ready)
        if point == "files in place":
            raise Died
        real(self, ready)
        if point == "first commit" or (point == "second commit" and len(calls) > 1):
            raise Died

    engine.hook = dying(point)
    with patch.context() as within:
        within.setattr(log, "commit", commit)
        with pytest.raises(Died):
            engine.tick()
    engine.stop()
