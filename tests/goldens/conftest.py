"""``--rewrite-goldens``: write the golden files instead of comparing with them."""

from __future__ import annotations

import pytest


@pytest.fixture
def rewrite_goldens(request: pytest.FixtureRequest) -> bool:
    """True if the golden files are written again."""
    return bool(request.config.getoption("--rewrite-goldens"))
