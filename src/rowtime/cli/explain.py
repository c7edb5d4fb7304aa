"""``rowtime explain``: what each operator of a script needs, keeps, emits and promises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from rowtime.cli.options import AsJson, HomeFolder, Imports, Script, Settings, script_text, variables
from rowtime.cli.outcome import write_json
from rowtime.client.home import Home
from rowtime.core.errors import Refused
from rowtime.plan.bind.python_code import PythonCode
from rowtime.plan.explain import as_text, explain_query, explained, orders_as_text
from rowtime.plan.explain import explain as entries_of
from rowtime.plan.program import Program, compile_script

ON_WAITING = "Only a checkpoint knows what waits for what: rowtime status CHECKPOINT --waiting."

Monotonicity = Annotated[bool, typer.Option("--monotonicity", help="Only the order of each column.")]


def explain(
    file: Script,
    home: HomeFolder = None,
    settings: Settings = None,
    monotonicity: Monotonicity = False,
    imports: Imports = False,
    as_json: AsJson = False,
) -> None:
    """Show the plan of a script, without running it."""
    program = compile_script(script_text(file), Home(home), variables(settings), code=PythonCode(imports))
    if program.problems or program.not_checked:
        raise Refused(*program.problems, *program.not_checked)
    entries = entries_of(program)
    if as_json:
        warnings = [problem.as_json() for problem in program.warnings]
        write_json({"operators": entries, "explained": list(explained_as_json(program)), "warnings": warnings})
        return
    for problem in program.warnings:
        typer.echo(f"{problem}\n", err=True)
    plan = orders_as_text(entries) if monotonicity else as_text(entries)
    typer.echo("\n\n".join(filter(None, [plan, *explained_as_text(program)])))


def explained_as_text(program: Program) -> Iterator[str]:
    """Yield the answers to the EXPLAIN statements of a script."""
    for kind, root in program.explains:
        yield f"EXPLAIN {kind}\n{ON_WAITING if kind == 'WAITING' else explained(kind, root)}"


def explained_as_json(program: Program) -> Iterator[dict[str, Any]]:
    """Yield the same as plain values."""
    for kind, root in program.explains:
        yield {"explain": kind.lower(), "operators": explain_query(root)}
