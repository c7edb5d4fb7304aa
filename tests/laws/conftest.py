"""What all laws run with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowtime.state import journal


@pytest.fixture(scope="session", autouse=True)
def _entries_are_large() -> Iterator[None]:
    """Small entries count as large ones, so that what follows from bases and differences is what the laws see."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "LARGE", 1_000)
        yield
