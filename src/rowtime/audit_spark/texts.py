"""An audit as text, and as a page of HTML that can be sent to somebody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from rowtime.audit_spark.audited import Audit, CutResult, Difference, Loss
from rowtime.audit_spark.rewriting import KEEP, Advice
from rowtime.core import markup
from rowtime.core.counts import counted
from rowtime.operators.contract.lateness import in_words

SHOWN: Final = 5
_HEAD: Final = ("cut", "batches", "rows", "missing", "added", "dropped", "Spark's counter")
_STYLE: Final = (
    "body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #bbb;padding:.2em .6em;vertical-align:top}"
    "pre{background:#8881;padding:1em}"
)


def as_text(audit: Audit) -> str:
    """Return an audit as the command prints it."""
    return "\n".join(_lines(audit))


def _lines(audit: Audit) -> Iterator[str]:
    yield summary(audit)
    yield ""
    table = [_HEAD, *map(_cells, audit.cuts)]
    widths = [max(len(row[n]) for row in table) for n in range(len(_HEAD))]
    for first, *others in table:
        yield f"{first:<{widths[0]}}  {'  '.join(f'{one:>{n}}' for one, n in zip(others, widths[1:], strict=True))}"
    yield ""
    yield verdict(audit)
    for one in audit.differences[:SHOWN]:
        yield f"  {_row(audit, one.row)}: {_counts(audit, one)}"
    yield from _more(audit.differing, len(audit.differences[:SHOWN]), "  ")
    for operator, cut, loss in worst(audit):
        yield ""
        yield f"{rule(operator)} Most were dropped with {cut.name}, {counted(loss.rows or 0, 'rows')}:"
        for dropped in loss.examples[:SHOWN]:
            yield f"  {dropped.file}: {dropped.row} ({dropped.time}, watermark {dropped.watermark})"
        yield from _more(loss.rows or 0, len(loss.examples[:SHOWN]), "  ")
    yield from (f"\n{reason}" for reason in unknown(audit))
    for advice in audit.advice:
        yield f"\n{lateness(advice)}"
    yield f"\n{in_rowtime(audit)}"
    if audit.query.sql:
        yield f"\n{audit.query.sql}"


def summary(audit: Audit) -> str:
    """Return what was audited, in one line."""
    places = ", ".join(f"{one['name']} ({counted(one['files'], 'files')})" for one in audit.inputs)
    batch = (
        audit.reason if audit.batch is None else f"one batch over the same rows gives {counted(audit.batch, 'rows')}"
    )
    return f"{audit.job} over {places}: {batch}"


def verdict(audit: Audit) -> str:
    """Return whether the result depends on the cut, in a sentence."""
    beside = "" if audit.batch is None else ", and the batch"
    if audit.differing:
        return (
            f"! The result depends on the batches: {counted(audit.differing, 'rows')} differ between the cuts{beside}."
        )
    if not audit.agrees:
        return f"! All cuts{beside} give the same rows, but rows were dropped."
    return f"All cuts{beside} give the same rows, and no row was dropped."


def rule(operator: Any) -> str:
    """Return when an operator drops a row."""
    return f"{operator.name} drops a row if {operator.compares} is not above the watermark of the batch before."


def worst(audit: Audit) -> Iterator[tuple[Any, CutResult, Loss]]:
    """Yield each operator that dropped rows, with the cut in which it dropped most."""
    for number, operator in enumerate(audit.operators):
        cut = max(audit.cuts, key=lambda one: one.losses[number].rows or 0)
        if cut.losses[number].rows:
            yield operator, cut, cut.losses[number]


def unknown(audit: Audit) -> Iterator[str]:
    """Yield why rows that an operator drops are not known."""
    for operator in audit.operators:
        if operator.reason:
            yield f"The rows that {operator.name} drops are not known: {operator.reason}."


def lateness(advice: Advice) -> str:
    """Return how late the rows of an input are."""
    most = f"{in_words(advice.most)} keeps {KEEP:.0%} ({counted(advice.late, 'rows')} late)"
    return (
        f"{advice.input}: {advice.column} of {counted(advice.rows, 'rows')} is at most {in_words(advice.all)} late; "
        f"the job waits {advice.delay}. In rowtime WITHIN {in_words(advice.all)} loses nothing, {most}."
    )


def in_rowtime(audit: Audit) -> str:
    """Return what the query of rowtime gives."""
    if audit.query.reason:
        return (
            f"A query of rowtime is not written: {audit.query.reason}. docs/howto/cookbook.md has joins and duplicates."
        )
    return "This query of rowtime has one answer, however rows come in batches. It gives the rows of the batch:"


def _cells(cut: CutResult) -> tuple[str, ...]:
    dropped = [loss.rows for loss in cut.losses if loss.rows is not None]
    spark = [loss.spark for loss in cut.losses if loss.spark is not None]
    known = dropped or not cut.losses
    numbers = (cut.batches, cut.rows, cut.missing, cut.added, sum(dropped) if known else None, sum(spark))
    return (cut.name, *("?" if one is None else f"{one:,}" for one in numbers))


def _row(audit: Audit, row: Sequence[Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(audit.columns, row, strict=True))


def _counts(audit: Audit, one: Difference) -> str:
    """Return where a row is: with which cuts, and how often."""
    sides = [*([] if one.batch is None else [("batch", one.batch)])]
    sides += [(cut.name, number) for cut, number in zip(audit.cuts, one.cuts, strict=True)]
    times = {number: [name for name, n in sides if n == number] for _, number in sides}
    words = {0: "not in", 1: "in"}
    return "; ".join(
        f"{words.get(n, f'{n} times in')} {', '.join(names)}" for n, names in sorted(times.items(), reverse=True)
    )


def _more(count: int, shown: int, indent: str) -> Iterator[str]:
    if count > shown:
        yield f"{indent}and {count - shown:,} more"


def as_page(audit: Audit) -> str:
    """Return an audit as one page without any other resource; every value is escaped."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{markup.text(audit.job)}</title>'
        f"<style>{_STYLE}</style></head><body>\n" + "\n".join(_blocks(audit)) + "\n</body></html>\n"
    )


def _blocks(audit: Audit) -> Iterator[str]:
    yield f"<h1>What {markup.text(audit.job)} loses</h1>"
    yield _paragraph(summary(audit))
    yield _paragraph(verdict(audit))
    yield markup.table(_HEAD, map(_cells, audit.cuts))
    if audit.differences:
        yield "<h2>Rows that differ</h2>"
        heads = [*audit.columns, *([] if audit.batch is None else ["batch"]), *(cut.name for cut in audit.cuts)]
        rows = [(*one.row, *([] if one.batch is None else [one.batch]), *one.cuts) for one in audit.differences]
        yield markup.table(heads, rows)
        yield from map(_paragraph, _more(audit.differing, len(audit.differences), ""))
    for operator, cut, loss in worst(audit):
        yield f"<h2>Rows that {markup.text(operator.name)} dropped with {markup.text(cut.name)}</h2>"
        yield _paragraph(rule(operator))
        rows = [(one.file, one.row, one.time, one.watermark) for one in loss.examples]
        yield markup.table(("file", "row", operator.compares, "watermark"), rows)
        yield from map(_paragraph, _more(loss.rows or 0, len(loss.examples), ""))
    yield "<h2>How long to wait</h2>"
    yield from map(_paragraph, (*unknown(audit), *map(lateness, audit.advice), in_rowtime(audit)))
    if audit.query.sql:
        yield markup.preformatted(audit.query.sql)


def _paragraph(text: str) -> str:
    return f"<p>{markup.text(text)}</p>"
