"""Orders to the pumps of a pipeline: a start begins with those that wait, a run takes them up between two ticks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowtime.client.home import Home
from rowtime.core.errors import Problem, Refused, RowtimeError, headline
from rowtime.core.log import LOG
from rowtime.core.stores import Place, place_of
from rowtime.plan.pump_orders import Order, Orders
from rowtime.runtime.pump_ordering import Ordered, give_order
from rowtime.runtime.quiet import hiding
from rowtime.runtime.retries import permanent
from rowtime.state import pump_orders
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from rowtime.api.pipeline import Pipeline
    from rowtime.plan.program import Program
    from rowtime.runtime.engine import Engine


def alter(
    checkpoint: str | Path | Place,
    text: str,
    pipeline: Pipeline | None = None,
    *,
    variables: Mapping[str, str] | None = None,
    home: str | Path | None = None,
) -> Ordered:
    """Start and stop pumps of a pipeline, running or not, by ``ALTER PUMP … START | STOP``, also from another process.

    The order is stored in the checkpoint; the pipeline takes it up between two ticks, or at its next start. It holds
    until another order. ``pipeline``: what the script needs from Python, so that what cannot be carried out is refused
    at once. Raises ``Refused``: R103 for a pump that does not exist, R149 for other statements, R401 if the plan cannot
    go on so, R405 for a folder that is no checkpoint.
    """
    compiled = None if pipeline is None else partial(_compiled, pipeline, checkpoint)
    return give_order(checkpoint, text, variables, Home(home), compiled)


def _compiled(pipeline: Pipeline, checkpoint: str | Path | Place, orders: Orders) -> Program:
    return pipeline.compile(checkpoint, orders=orders, imports=True)


_OF_THE_DRIVER = ("R403", "R408")  # what an order is not to blame for


def in_force(checkpoint: str | Path | Place | None) -> Orders:
    """Return the orders that the plan of a checkpoint has."""
    plan = None if checkpoint is None else Checkpoint(place_of(checkpoint)).plan
    return Orders() if plan is None else plan.orders


def with_orders(pipeline: Pipeline, program: Program, place: Checkpoint) -> Program:
    """Return a program as the orders that wait in a checkpoint want it, as far as they only stop pumps.

    A pump whose target refuses it can be stopped so. An order that starts pumps, or does not fit, waits until the
    pipeline runs, with the later ones: if it is refused then, the run goes on.
    """
    from rowtime.api.starting import check_plan  # noqa: PLC0415 - it makes an engine

    for order in pump_orders.waiting(place.folder, program.orders):
        if any(order.pumps.values()):
            break
        try:
            altered = pipeline.compile(place.folder, orders=program.orders.after(order), imports=True)
            check_plan(place, altered, delivered=True)
        except Refused:
            break
        program = altered
    return program


def take_up(pipeline: Pipeline, engine: Engine) -> list[tuple[str, ...]]:
    """Carry out the orders that wait, and return in words what each has changed.

    An order that is refused stays in the checkpoint with the reason, and the engine goes on as before. Raises what a
    retry can overcome.
    """
    changes = []
    for order in pump_orders.waiting(engine.checkpoint.folder, engine.plan.orders):
        try:
            _go_over(pipeline, engine, order)
        except Exception as error:
            if not permanent(error) or _codes(error) & {*_OF_THE_DRIVER}:
                raise
            _refuse(engine, order, error)
        else:
            pump_orders.forget_refused(engine.checkpoint.folder)
            changes.append(engine.changes or (order.text,))
            LOG.info("%s: %s", order.text, "; ".join(changes[-1]), extra={"event": "order", "changes": [*changes[-1]]})
    return changes


def _go_over(pipeline: Pipeline, engine: Engine, order: Order) -> None:
    from rowtime.api.starting import check_plan, check_with_spark  # noqa: PLC0415 - it makes an engine
    from rowtime.runtime.claims import claim, let_leave  # noqa: PLC0415 - as above
    from rowtime.runtime.function_pins import keep  # noqa: PLC0415 - as above
    from rowtime.runtime.session import active  # noqa: PLC0415 - as above

    place, spark = engine.checkpoint, engine.spark
    engine.settled()
    orders = engine.plan.orders.settled().after(order)
    program = pipeline.compile(place.folder, orders=orders, imports=True)
    check_plan(place, program)
    with active(spark), hiding(program.secrets):
        keep(place, check_with_spark(pipeline, program, place, spark))
        running = {node.name: node for node in engine.program.streams}
        sources = {
            name: engine.sources[name] if name in running and running[name] == node else source
            for (name, source), node in zip(pipeline.sources(program, place).items(), program.streams, strict=True)
        }
        stages = {**pipeline.stages(program, place)}
        new = [node for node in program.sinks if node.name not in engine.stages]
        claims = {node.name: stages[node.name] for node in new}
        claim(place, new, claims, engine.take_over, engine.clock(), program.catalog.pumps)
        stages |= {name: stage for name, stage in engine.stages.items() if name in stages}
        before = engine.sources, engine.stages
        engine.tables = {**engine.tables, **pipeline.given_tables(program)}
        engine.go_over(program, sources, stages)
        _close(before[0], sources)
        _close(before[1], stages)
        let_leave(place, pipeline.home, engine.clock())


def _close(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Release the sources or sinks that are no longer used."""
    for name, sink in before.items():
        close = getattr(sink, "close", None)
        if close is not None and now.get(name) is not sink:
            close()


def _codes(error: BaseException) -> set[str]:
    return {problem.code for problem in error.problems} if isinstance(error, RowtimeError) else set()


def _refuse(engine: Engine, order: Order, error: Exception) -> None:
    problems = error.problems if isinstance(error, RowtimeError) else (Problem("R902", headline(error)),)
    pump_orders.refuse(engine.checkpoint.folder, order, problems)
    message = headline(error)
    extra = {"event": "order refused", "error": message}
    LOG.warning("the order %s was refused, and the run goes on: %s", order.text, message, extra=extra)
