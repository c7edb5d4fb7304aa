"""An audit: a job with several cuts, one batch over the same rows, and what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException

from rowtime.audit_spark.cuts import Ran, Row, cuts_of, rows_of, run
from rowtime.audit_spark.inputs import Inputs
from rowtime.audit_spark.jobs import Job
from rowtime.audit_spark.operators import Operator, Plan, plan_of
from rowtime.audit_spark.rewriting import Advice, Rewritten, advice_of, compared, rewritten
from rowtime.core.counts import counted
from rowtime.core.errors import Refused, causes, headline
from rowtime.core.time import to_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES: Final = 20


@dataclass(frozen=True)
class Dropped:
    """A row that Spark dropped: where it came from, the time that was compared, and the watermark of its batch."""

    file: str
    row: str
    time: str
    watermark: str


@dataclass(frozen=True)
class Loss:
    """What an operator dropped with one cut. ``rows``: None if unknown. ``spark``: the counter of Spark, if known."""

    operator: str
    rows: int | None
    spark: int | None
    examples: Sequence[Dropped]


@dataclass(frozen=True)
class CutResult:
    """What a cut gave. ``missing`` and ``added``: rows beside the batch, None without one."""

    name: str
    batches: int
    restarts: bool
    rows: int
    missing: int | None
    added: int | None
    losses: Sequence[Loss]
    seconds: float


@dataclass(frozen=True)
class Difference:
    """A row of the results, how often the batch has it (None without one), and how often each cut."""

    row: Row
    batch: int | None
    cuts: Sequence[int]


@dataclass(frozen=True)
class Audit:
    """What the cuts of a job gave, beside a batch. ``reason``: why there is no batch.

    ``differences``: the first of ``differing`` rows that the batch or a cut has more often than another.
    """

    job: str
    mode: str
    inputs: Sequence[dict[str, Any]]
    columns: Sequence[str]
    batch: int | None
    reason: str
    cuts: Sequence[CutResult]
    differing: int
    differences: Sequence[Difference]
    operators: Sequence[Operator]
    advice: Sequence[Advice]
    query: Rewritten

    @property
    def agrees(self) -> bool:
        """Return True if all cuts give the same rows, those of the batch, and no row was dropped."""
        dropped = any(loss.rows or loss.spark for cut in self.cuts for loss in cut.losses)
        return not (self.differing or dropped)

    def as_json(self) -> dict[str, Any]:
        """Return the audit as plain values; durations in µs."""
        return {
            "job": self.job,
            "mode": self.mode,
            "agrees": self.agrees,
            "inputs": [*self.inputs],
            "batch": {"rows": self.batch, "reason": self.reason},
            "cuts": [asdict(cut) for cut in self.cuts],
            "differing": self.differing,
            "columns": [*self.columns],
            "differences": [asdict(one) for one in self.differences],
            "operators": [{"name": one.name, "compares": one.compares, "reason": one.reason} for one in self.operators],
            "watermarks": [asdict(one) for one in self.advice],
            "rowtime": {"sql": self.query.sql, "reason": self.query.reason},
        }


def audit(  # noqa: PLR0913 - the options of a command
    spark: SparkSession,
    job: Job,
    inputs: Inputs,
    mode: str = "append",
    randoms: int = 1,
    seed: int = 1,
    progress: Callable[[str], None] = lambda _: None,
) -> Audit:
    """Audit a job over its inputs. All that it writes is in a temporary folder.

    Raises ``Refused`` (R632) if the job cannot be built, ``Failure`` (R634) if it fails with one of the cuts.
    """
    with TemporaryDirectory(prefix="rowtime-audit-") as scratch:
        folder = Path(scratch)
        progress("reading the plan and the times of all rows")
        plan = plan_of(spark, job, inputs, mode, folder / "plan")
        progress("one batch over all rows")
        batch, reason = _batch(spark, job, inputs)
        runs = []
        for number, cut in enumerate(cuts_of(len(inputs.order), randoms, seed)):
            progress(f"{cut.name}: {counted(len(cut.batches), 'groups of files')}")
            runs.append(run(spark, job, inputs, cut, mode, folder / f"cut-{number}"))
        advice = [advice_of(one, inputs) for one in plan.watermarks]
        query = Rewritten(reason="there is no batch to compare it with")
        if batch is not None:
            progress("the same in rowtime")
            frame = job.frame(spark, inputs.streaming(spark, folder / "plan" / "input"))
            query = rewritten(frame._jdf.queryExecution().analyzed(), inputs, advice)  # noqa: SLF001 - the plan is Java's
            query = compared(spark, query, runs[0].columns, batch, folder / "home")
    described = [{"name": one.name, "place": one.place, "files": len(one.files)} for one in inputs.every]
    differences = sorted(_differences(batch, runs), key=lambda one: repr(one.row))
    results = [_result(one, batch, plan, inputs) for one in runs]
    size = None if batch is None else batch.total()
    return Audit(
        job.name,
        mode,
        described,
        runs[0].columns,
        size,
        reason,
        results,
        len(differences),
        differences[:EXAMPLES],
        plan.operators,
        advice,
        query,
    )


def _batch(spark: SparkSession, job: Job, inputs: Inputs) -> tuple[Counter[Row] | None, str]:
    try:
        return rows_of(job.frame(spark, inputs.static(spark)).toArrow()), ""
    except (PySparkException, Refused) as error:
        first = [*causes(error)][-1]
        return None, f"Spark does not compute it: {headline(first)}"


def _differences(batch: Counter[Row] | None, runs: Sequence[Ran]) -> Iterator[Difference]:
    counters = [*([] if batch is None else [batch]), *(one.rows for one in runs)]
    for row in set().union(*counters):
        numbers = [one[row] for one in counters]
        if len(set(numbers)) > 1:
            yield Difference(row, None if batch is None else batch[row], [one.rows[row] for one in runs])


def _result(ran: Ran, batch: Counter[Row] | None, plan: Plan, inputs: Inputs) -> CutResult:
    counters = ran.counters if len(ran.counters) == len(plan.operators) else [None] * len(plan.operators)
    losses = [_loss(ran, one, spark, inputs) for one, spark in zip(plan.operators, counters, strict=True)]
    if not any(ran.counters) or counters is ran.counters:
        others = []
    else:  # the optimizer has joined or added operators
        others = [Loss("all operators", None, sum(ran.counters), ())]
    missing = None if batch is None else (batch - ran.rows).total()
    added = None if batch is None else (ran.rows - batch).total()
    cut = ran.cut
    return CutResult(
        cut.name, len(cut.batches), cut.restarts, ran.rows.total(), missing, added, [*losses, *others], ran.seconds
    )  # fmt: skip


def _loss(ran: Ran, operator: Operator, spark: int | None, inputs: Inputs) -> Loss:
    if operator.reason:
        return Loss(operator.name, None, spark, ())
    rows, examples, order = 0, list[Dropped](), inputs.order
    for side in operator.sides:
        late = side.late(ran.marks)
        rows += len(late)
        for position in late[: EXAMPLES - len(examples)].tolist():
            file = int(side.file[position])
            row, time, mark = side.rows[position].as_py(), int(side.time[position]), ran.marks[file]
            examples.append(Dropped(order[file][1].name, row, to_text(time), to_text(mark)))
    return Loss(operator.name, rows, spark, examples)
