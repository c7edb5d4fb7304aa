"""The page `docs/conformance.md`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from conformance.differential import Compared
from conformance.flink_views import LEFT_OUT
from conformance.verdicts import DIFFERENT, OUTCOMES, REFUSED, RIGHT, Suite

HEAD: Final = """\
# Conformance

Other systems publish test suites for features that rowtime has too. This page says how many of their cases rowtime
answers in the same way, which cases it refuses and why, and which answers differ on purpose. `make conformance
ARGS="--write"` writes the page. CI fails if any case is wrong.

- *Right*: rowtime gives the rows that the suite expects.
- *Refused*: there is no SQL for it, or `rowtime check` refuses the query. Each reason is listed.
- *Different on purpose*: the answer follows a rule of the [semantics](semantics.md). Each rule is listed.
- *Wrong*: everything else.

Tests of other systems are converted when they run, and are not part of this repository. The cases of Calcite, Spark and
Nexmark (`conformance/cases`) and Flink's published row patterns are restated from published facts: rows, and their
answer. PyFlink computes Flink's other answers itself (`make flink`). `SUITES=folder make conformance` reads the
transcripts of Beam below a folder instead of those in the wheel. With `ARGS="--noted folder"`, a stopped run continues
where it was.

## Suites

| suite | cases | right | refused | different on purpose | wrong |
| --- | --- | --- | --- | --- | --- |
"""
EXPRESSIONS: Final = """
## Random expressions

The driver computes most expressions with DuckDB, and must give Spark's values. `make expressions` (`python -m
conformance.engines --expressions 20000 --seed 1`) draws expressions, aggregates and windows over columns of 29 types
with edge cases as values, until 20,000 of them have a translation. Both compute each of them for each row or group:
the value and its type are the same (NaN equals NaN, and the zeros differ), or both fail. A difference is printed with
the smallest part that shows it and the row. Expressions without a translation are only counted, because Spark
computes them in any case; so are rows that only the driver cannot compute. Every rule of the translator has to be
drawn.
"""
RANDOM: Final = """
## Random pipelines

A random pipeline has one to four views on top of each other: filters and projections, unions, T-sorts, groups of
windows, sessions and calendar units, DISTINCT, frames, the first rows of windows, joins within a time, of windows, as
of a time and with tables. The columns have the types INT, BIGINT, DECIMAL, DOUBLE, BOOLEAN, STRING, DATE and TIMESTAMP,
with NULLs. DuckDB computes the same over the same rows, and also the rowtime of each row by the rules of
[section 5](semantics.md#5-operators). rowtime reads the rows from one to three files, a tick each, some of them in
disorder. A mismatch is printed with its seed, both queries and the fewest rows that show it. The long form (`make
conformance`) has 2,000 of them and takes about an hour on two cores, CI has 100.
"""
BESIDE_FLINK: Final = """
## Random pipelines beside PyFlink

These have filters and projections, unions, groups of TUMBLE, HOP, CUMULATE and SESSION windows, frames, the first rows
of windows, joins within a time and as of a time, and row patterns, again on top of each other. One process of PyFlink
computes all of them over the same rows, to the millisecond, some of them in disorder. Rows and rowtimes are compared
as sets: the rowtime of a group is the end of its window, that of a match `MATCH_ROWTIME()`, and that of a join the
later one of both. NULLs are in keys, joins, aggregates, conditions and orders (first where ascending, last where
descending). No row is late in either: streams in disorder have a watermark of ten minutes, and a T-sort of ten minutes
in rowtime. What both have with another meaning is left out:

"""


def page(suites: Sequence[Suite], compared: Sequence[Compared], seed: int) -> str:
    """Return the text of the page; the first of ``compared`` is beside DuckDB, the other one beside PyFlink."""
    texts = (RANDOM, BESIDE_FLINK + "".join(f"- {why}\n" for why in LEFT_OUT))
    random = [line for text, one in zip(texts, compared, strict=False) for line in _random(text, one, seed)]
    return HEAD + "".join([*_table(suites), *_reasons(suites), EXPRESSIONS, *random])


def _table(suites: Sequence[Suite]) -> Iterator[str]:
    for suite in suites:
        counts = " | ".join(str(suite.count(one)) for one in OUTCOMES)
        yield f"| {suite.name} | {len(suite.verdicts)} | {counts} |\n"


def _reasons(suites: Sequence[Suite]) -> Iterator[str]:
    for suite in suites:
        yield f"\n### {suite.name}\n\nFrom {suite.source}.\n"
        if suite.missing:
            yield f"\nNot run: {suite.missing}.\n"
        for outcome, title in ((REFUSED, "Refused"), (DIFFERENT, "Different on purpose")):
            found = suite.reasons(outcome)
            if found:
                yield f"\n{title}:\n\n"
                yield from (f"- {why}{f' ({many} cases)' if many > 1 else ''}\n" for why, many in found)
        right = [one.case for one in suite.verdicts if one.outcome == RIGHT]
        if right:
            yield f"\nRight: {'; '.join(right)}.\n"


def _random(text: str, compared: Compared, seed: int) -> Iterator[str]:
    yield text
    yield f"\n{compared.line(seed)}\n\n| last step | pipelines |\n| --- | --- |\n"
    yield from (f"| {kind} | {many:,} |\n" for kind, many in sorted(compared.right.items()))
    if compared.refused:
        yield "\nThese were refused and not compared:\n\n"
        yield from (f"- {why}: {many}\n" for why, many in sorted(compared.refused.items()))
