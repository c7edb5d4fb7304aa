"""``rowtime check``: all problems of some scripts, without Spark or Java."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rowtime.cli.options import (
    AsJson,
    Conf,
    HomeFolder,
    Imports,
    Jars,
    Packages,
    Settings,
    script_text,
    spark_conf,
    variables,
)
from rowtime.cli.outcome import REFUSED, write_json
from rowtime.client.home import Home
from rowtime.client.home_users import CHECKPOINTS
from rowtime.core.errors import Problem
from rowtime.plan.bind.python_code import PythonCode
from rowtime.plan.program import compile_script

Scripts = Annotated[
    list[Path], typer.Argument(metavar="FILE", exists=True, dir_okay=False, readable=True, help="Files of SQL.")
]


WithSpark = Annotated[
    bool, typer.Option("--spark", help="Start Spark to find wrong types and functions as well; no job runs.")
]


def check(
    files: Scripts,
    home: HomeFolder = None,
    settings: Settings = None,
    as_json: AsJson = False,
    spark: WithSpark = False,
    imports: Imports = False,
    conf: Conf = None,
    jars: Jars = None,
    packages: Packages = None,
) -> None:
    """Check scripts for errors, without running them."""
    settings_of_spark, values = spark_conf(conf, jars, packages), variables(settings)
    if settings_of_spark and not spark:
        raise typer.BadParameter(
            "this option is for Spark, which starts only with --spark", param_hint="--conf, --jars, --packages"
        )
    code = PythonCode(imports)
    findings = {file: _findings(file, Home(home), values, settings_of_spark if spark else None, code) for file in files}
    if as_json:
        write_json([_as_json(file, *finding) for file, finding in findings.items()])
    else:
        for file, finding in findings.items():
            _show(file, *finding, named=len(files) > 1)
    if any(_refused(problems) for problems, _ in findings.values()):
        raise typer.Exit(REFUSED)


def _findings(
    file: Path, home: Home, values: dict[str, str], conf: dict[str, str] | None, code: PythonCode
) -> tuple[list[Problem], int]:
    """Return the problems of a script, and its number of statements; with a ``conf`` also those that Spark finds."""
    text = script_text(file)
    program = compile_script(text, home, values, code=code)
    own = home.path / CHECKPOINTS / file.stem
    replaced = home.replaced({one.name: one.as_json() for one in program.defines}, program.drops, own)
    problems = [*program.problems, *program.warnings, *replaced]
    if conf is not None and not program.problems:
        from rowtime.api.pipeline import Pipeline  # noqa: PLC0415 - without the flag Java is not needed
        from rowtime.runtime.quiet import hiding  # noqa: PLC0415 - the same

        with hiding(program.secrets):
            problems = [*Pipeline(home=home.path, conf=conf).sql(text, values).check_types(program), *problems]
    return problems, program.statements


def _refused(problems: list[Problem]) -> bool:
    return any(not problem.warns for problem in problems)


def _as_json(file: Path, problems: list[Problem], statements: int) -> dict[str, Any]:
    return {
        "file": str(file),
        "ok": not _refused(problems),
        "statements": statements,
        "problems": [problem.as_json() for problem in problems],
    }


def _show(file: Path, problems: list[Problem], statements: int, *, named: bool) -> None:
    ok = [] if _refused(problems) else [f"ok: {statements} statement{'' if statements == 1 else 's'}"]
    verdict = "\n\n".join([*map(str, problems), *ok])
    typer.echo(f"{file}\n{verdict}\n" if named and problems else f"{file}: {verdict}" if named else verdict)
