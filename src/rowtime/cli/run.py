"""``rowtime run``: runs a script until its input ends or Ctrl-C."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from rowtime.cli.logs import LogJson, LogLevel, LogTo
from rowtime.cli.options import (
    AsJson,
    Conf,
    HomeFolder,
    Jars,
    Packages,
    Script,
    Settings,
    script_text,
    spark_conf,
    variables,
)
from rowtime.core.small_ticks import SmallTicks

Folder = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="A folder or s3://bucket/folder. Default: checkpoints/<name of the file> in the home directory.",
    ),
]
AvailableNow = Annotated[
    bool,
    typer.Option(
        "--available-now/--continuous",
        help="Stop after reading all available input, or keep running. Neither ends a stream.",
    ),
]

End = Annotated[
    bool,
    typer.Option("--end", help="Like --available-now, and also end the streams over files: no more files will arrive."),
]

FailOnRefused = Annotated[
    float | None,
    typer.Option(
        "--fail-on-refused",
        metavar="SHARE",
        min=0.0,
        max=1.0,
        help="With --available-now or --end: status 3 (R527) if a gate refuses more than this share of the run's rows.",
    ),
]

TakeOver = Annotated[
    list[str] | None,
    typer.Option(
        "--take-over", metavar="PUMP", help="Let this pump take over from the pump of that name in another checkpoint."
    ),
]

Renewed = Annotated[
    list[str] | None,
    typer.Option(
        "--renewed", metavar="FUNCTION", help="Accept that this function has changed: later rows use the new one."
    ),
]

KeepTicks = Annotated[
    int,
    typer.Option(
        "--keep-ticks", metavar="N", min=0, help="How many ticks the journal keeps for the console; at least 64."
    ),
]

Small = Annotated[
    SmallTicks | None,
    typer.Option(
        "--small-ticks",
        help="Where ticks are computed: Spark's tasks, or the driver, which answers sooner in "
        "local mode. Default: ROWTIME_SMALL_TICKS, else spark.",
    ),
]

MetricsPort = Annotated[
    int | None,
    typer.Option("--metrics-port", metavar="N", min=0, max=65_535, help="Serve metrics for Prometheus on this port."),
]
MetricsHost = Annotated[
    str,
    typer.Option(
        "--metrics-host",
        metavar="ADDRESS",
        help="The address of the metrics; default: 127.0.0.1, for this machine only.",
    ),
]
ShowConsole = Annotated[
    bool, typer.Option("--ui", help="Also show the run in a browser; the address is printed on standard error.")
]
OpenLineage = Annotated[
    bool, typer.Option("--openlineage", help="Send events to the endpoint in OpenLineage's own configuration.")
]


_REFUSED = "--fail-on-refused"


def run(
    file: Script,
    checkpoint: Folder = None,
    home: HomeFolder = None,
    available_now: AvailableNow = False,
    end: End = False,
    fail_on_refused: FailOnRefused = None,
    settings: Settings = None,
    take_over: TakeOver = None,
    renewed: Renewed = None,
    keep_ticks: KeepTicks = 0,
    small_ticks: Small = None,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = "",
    openlineage: OpenLineage = False,
    conf: Conf = None,
    jars: Jars = None,
    packages: Packages = None,
    log_level: LogLevel = None,
    log_json: LogJson = False,
    console: ShowConsole = False,
    as_json: AsJson = False,
) -> None:
    """Run a script. Ctrl-C stops it after the current tick, a second Ctrl-C at once."""
    if fail_on_refused is not None and not (available_now or end):
        raise typer.BadParameter("a continuous run has no end: add --available-now or --end", param_hint=_REFUSED)
    how: dict[str, Any] = {"available_now": available_now or end, "end": end, "take_over": take_over or ()}
    how |= {"keep_ticks": keep_ticks, "small_ticks": small_ticks, **({"lineage": True} if openlineage else {})}
    how["most_refused"] = fail_on_refused
    if metrics_port is not None:
        how["metrics"] = f"{metrics_host}:{metrics_port}"
    settings_of_spark = spark_conf(conf, jars, packages)
    if console:  # its page has a link to that of Spark
        settings_of_spark = {"spark.ui.enabled": "true", **settings_of_spark}
    with LogTo(log_level, as_json=log_json) as log:
        script, name, values = script_text(file), Path(file).stem, variables(settings)
        how["renewed"] = renewed or ()
        from rowtime.runtime.session import early_java  # noqa: PLC0415 - the help needs none of it

        words = (script, *values.values(), home or os.environ.get("ROWTIME_HOME"), checkpoint)
        with early_java("\n".join(filter(None, words)), settings_of_spark):
            from rowtime.cli.running import run_script  # noqa: PLC0415 - Java starts while it is imported

            run_script(
                script, checkpoint, name, home, values, settings_of_spark, how, log, console=console, as_json=as_json
            )
