"""The contract of operators: what has no answer of its own is refused when it is built, not when it is asked."""

from __future__ import annotations

import pytest

from rowtime.operators.contract import Operator, Unary


class Silent(Unary):
    """It does not step."""


class Shapeless(Operator):
    """It says nothing of its edge."""


def test_an_operator_that_lacks_an_answer_cannot_be_built() -> None:
    with pytest.raises(TypeError, match="step"):
        Silent()  # type: ignore[abstract]
    with pytest.raises(TypeError, match="emits"):
        Shapeless()  # type: ignore[abstract]
