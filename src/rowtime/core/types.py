"""Limits of Spark's types, which a client without Spark has to keep as well."""

from __future__ import annotations

from typing import Final

LONGEST_TEXT: Final = (1 << 31) - 1
"""Characters: the greatest length of a VARCHAR or CHAR."""
