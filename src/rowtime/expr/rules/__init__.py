"""The rules of monotonicity (semantics 6), one table, gathered from a module a family of functions.

A rule takes a node and a `Parts`, which proves the node's parts, and gives what is known of
the node with the words of the rule. What has no rule has no order.
"""

from rowtime.expr.rules import arithmetic, casts, choices, functions, texts, times, windows
from rowtime.expr.rules.table import NAMED, RULES

__all__ = ["NAMED", "RULES", "arithmetic", "casts", "choices", "functions", "texts", "times", "windows"]
