"""Which OPTIONS files may hold: no secrets, and only the lasting ones.

A home and a checkpoint store ``${name}`` in place of a secret. A secret that a script has as a literal gets a variable
of its own, ``secret_<stream>_<option>``, so that the script can be compiled again as long as somebody gives its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from rowtime.core.errors import Place, Problem
from rowtime.core.secrets import (
    Secrets,
    filled,
    is_secret,
    is_secret_variable,
    kept,
    secret_spans,
    variables_in,
    without_secrets,
)
from rowtime.plan.finite import ENDS
from rowtime.plan.formats.files import MODE_OF_RECORDS, MODES_OF_RECORDS, ROWS_PER_FILE
from rowtime.plan.formats.kafka_transactions import TRANSACTIONS
from rowtime.plan.formats.lake import SKIPS
from rowtime.sql.dialect import Rowtime
from rowtime.sql.filled import FilledText
from rowtime.sql.statements import CreateStream, CreateTable, Options

_REACHED: Final = ("kafka.", "schema.registry.", "url", "user", "password")
_OF_A_RUN: Final = (ENDS, SKIPS.lower(), ROWS_PER_FILE.lower(), TRANSACTIONS)


@dataclass
class Keeper:
    """Replaces the secrets in a script's options; ``literal`` are those written as literals, by their new variables.

    ``secret``: the variables in secret options.
    """

    text: FilledText
    variables: Mapping[str, str]
    literal: dict[str, str] = field(default_factory=dict)
    cuts: list[tuple[int, int, str]] = field(default_factory=list)
    secret: set[str] = field(default_factory=set)

    def options(self, statement: CreateStream | CreateTable) -> Options:
        """Return the options of a definition as files may hold them: secrets as variables, others with their values."""
        options = []
        for (name, value), at in zip(statement.options, statement.option_places, strict=True):
            if not secret_spans(name, value):
                options.append((name, value))
                continue
            start, end = self.text.origin(at.start, at.end)
            written = self.text.written[start : end + 1]
            written = str(Rowtime().tokenize(written)[0].text) if written.startswith("'") else written
            text, literal = kept(statement.name.text.lower(), name, written)
            self.secret |= {*variables_in(text)}
            if literal:
                self.literal |= {variable: filled(value, self.variables) for variable, value in literal.items()}
                self.cuts.append((start, end + 1, "'" + text.replace("'", "''") + "'"))
            options.append((name, text))
        return tuple(options)

    def values(self, secrets: Secrets) -> dict[str, str]:
        """Return the values of the script's variables, except those that are secret or part of a secret."""
        open_ = {name: self.variables[name] for name in variables_in(self.text.written) if name in self.variables}
        hidden = {name for name, value in open_.items() if name in self.secret or is_secret_variable(name)}
        return {name: value for name, value in open_.items() if name not in hidden and secrets.hide(value) == value}

    def script(self) -> str:
        """Return the script as files may hold it."""
        text = self.text.written
        for start, end, new in sorted(self.cuts, reverse=True):
            text = f"{text[:start]}{new}{text[end:]}"
        return text


def unknown_secrets(stream: str, options: Options, place: Place) -> list[Problem]:
    """Return problems (R543) for secrets of a stream of the home directory that are not given."""
    problems = []
    for name, value in options:
        what = f"the option {name} of {stream} holds a secret, which the home directory does not store"
        for start, end in secret_spans(name, value):
            for variable in variables_in(value[start:end]):
                hint = f"Give it with --set {variable}=…, or define {stream} in this script."
                problems.append(Problem("R543", what, place, hint))
    return problems


def hidden(problems: tuple[Problem, ...], secrets: Secrets) -> tuple[Problem, ...]:
    """Return problems with the secrets in their texts hidden."""
    hide = secrets.hide
    return tuple(replace(p, message=hide(p.message), hint=hide(p.hint), note=hide(p.note)) for p in problems)


def lasting(options: Options) -> Options:
    """Return the options that say what is read or written.

    Connection options and secrets may change, and are not stored.
    """
    return tuple((name, without_secrets(name, value)) for name, value in options if lasts(name, value))


def lasts(name: str, value: str) -> bool:
    """Return True if an option says what is read or written; the journal has what else lasts.

    That is the declared end of a source, and the versions of a table that it has skipped. The length of a sink's files,
    whether a tick is a transaction, and whether a bad record ends the run, may change at any time.
    """
    if name.lower() == MODE_OF_RECORDS and value.upper() in MODES_OF_RECORDS:  # a table has a `mode` that lasts
        return False
    return not name.lower().startswith(_REACHED) and name.lower() not in _OF_A_RUN and not is_secret(name)
