"""Options of directories of Parquet, CSV and JSON files: rowtime's own, and those of Spark's readers and writers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Final

from rowtime.plan.finite import ENDS
from rowtime.plan.formats import contract as takes
from rowtime.plan.formats import json_values
from rowtime.plan.formats.contract import Format, Option, options_of, taking, unused

PARQUET_CODECS: Final = {
    "none": "none",
    "uncompressed": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "zstd": "zstd",
    "lz4": "lz4",
    "lz4_raw": "lz4",
    "brotli": "brotli",
}
"""Spark's and Arrow's names of the Parquet codecs that rowtime writes."""
TEXT_CODECS: Final = {"none": "", "uncompressed": "", "gzip": ".gz", "bzip2": ".bz2"}
"""Codecs of text files, and the suffixes by which readers recognize them."""

ORDERED: Final = Option(
    "ordered",
    takes.boolean,
    meaning="whether the rows of a tick are sorted in stream order before they are written",
    default="`true`; `false` for groups and panes in a directory",
    side="sink",
)
ROWTIME_COLUMN: Final = Option(
    "rowtime.column",
    takes.anything,
    meaning="source: the column that gives the rowtime; sink: the column to which ROWTIME is written, `''` for none",
    default="source: none, the rowtime is the arrival time; sink: `rowtime`",
    values="a name",
)
ROWTIME_WRITTEN: Final = replace(
    ROWTIME_COLUMN, meaning="the column to which ROWTIME is written, `''` for none", default="`rowtime`", side="sink"
)
"""The same option, for a format whose rows always have a rowtime when they are read."""
READS_TO_END: Final = Option(
    ENDS,
    takes.anything,  # `check_ends` checks it
    meaning="`true`: the stream ends when everything that exists has been read",
    default="`false`",
    values="true or false",
    side="source",
)
MODE: Final = Option(
    "mode",
    takes.anything,  # checked together with `key`
    meaning="`append`: every row is added. `upsert`: a row replaces the row with the same key. `changes`: as `upsert`, "
    "and a row whose column `change` is `RETRACT` deletes the row with its key; the table has no such column",
    default="`append` without a key, `upsert` with one",
    values="append, upsert or changes",
    side="sink",
)
KEY: Final = Option(
    "key",
    takes.anything,  # checked together with `mode`
    meaning="the columns that identify a row of the table",
    default="none",
    values="names of columns, separated by commas",
    side="sink",
)
ROWS_PER_FILE: Final = "maxRecordsPerFile"
PARTITIONS: Final = "partitionBy"
"""The name of ``PARTITIONED BY (a, b)`` among the options of a stream."""
DIRECTORIES: Final = frozenset({"parquet", "csv", "json"})
_UTF8: Final = takes.one_of("UTF-8", "UTF8")
_LINES: Final = takes.one_of("\n", "\\n")
_DECLARED: Final = "CREATE STREAM declares the columns and their types"
_UNESCAPED: Final = ("STOP_AT_CLOSING_QUOTE", "BACK_TO_DELIMITER", "STOP_AT_DELIMITER", "SKIP_VALUE", "RAISE_ERROR")
_REBASE: Final = takes.one_of("EXCEPTION", "CORRECTED", "LEGACY")

_COMMON: Final = (
    Option(
        "path",
        takes.some,
        meaning="source: a folder, a file or a glob; sink: the folder of the files",
        default="required",
    ),
    ROWTIME_COLUMN,
    ORDERED,
    Option(
        ROWS_PER_FILE,
        takes.whole(1000),
        meaning="the greatest number of rows in a file",
        default="no limit",
        side="sink",
    ),
    Option(
        PARTITIONS,
        takes.some,
        meaning="columns whose values are in the names of folders, the same as PARTITIONED BY",
        default="none",
        values="names of columns, separated by commas",
    ),
    READS_TO_END,
    Option(
        "pathGlobFilter",
        takes.some,
        meaning="only files whose names match this glob are read",
        default="all files",
        values="a glob",
        side="source",
    ),
    *unused("subfolders are always read", "recursiveFileLookup", alike=("true",)),
    *unused("a file that cannot be read must not be skipped", "ignoreCorruptFiles", alike=("false",)),
    *unused("a file that is gone must not be skipped", "ignoreMissingFiles", alike=("false",)),
    *unused("files are taken as they are found, each once", "modifiedAfter", "modifiedBefore", "maxFileAge"),
    *unused("files are taken in the order of their times", "latestFirst", alike=("false",)),
    *unused("a file is known by its whole path", "fileNameOnly", alike=("false",)),
    *unused("a tick takes as many files as its limits say", "maxFilesPerTrigger", "maxBytesPerTrigger"),
    *unused("rowtime leaves files in place", "cleanSource", alike=("off",)),
    *unused("rowtime leaves files in place", "sourceArchiveDir"),
    *unused("PARTITIONED BY says which columns come from the names of folders", "basePath"),
    *unused("existing files are never replaced", "partitionOverwriteMode"),
)
MODE_OF_RECORDS: Final = "mode"
"""The option for what happens with records that do not decode; it changes no result, only whether there is one."""
FAILFAST: Final = "FAILFAST"
MODES_OF_RECORDS: Final = ("PERMISSIVE", "DROPMALFORMED", FAILFAST)
GROWING: Final = "growing"
"""The option for a source whose files grow after they have been read."""
_TEXT: Final = (
    Option(
        GROWING,
        takes.boolean,
        meaning="whether files get more lines after they have been read",
        default="`false`",
        side="source",
    ),
    *unused(_DECLARED, "inferSchema", alike=("false",)),
    *unused(_DECLARED, "samplingRatio", "singleVariantColumn"),
    Option(
        MODE_OF_RECORDS,
        takes.one_of(*MODES_OF_RECORDS),
        meaning="what happens with a record that does not decode. `PERMISSIVE` and `DROPMALFORMED`: it is refused as "
        "`MALFORMED`. `FAILFAST`: the run ends with R525. If one is given, `rowtime run --available-now` does not fail "
        "(R526) when it could read no file",
        default="`PERMISSIVE`",
        side="source",
    ),
    *unused("the text of a malformed record is in name.rejected", "columnNameOfCorruptRecord"),
    *taking(takes.pattern, "dateFormat", "timestampFormat", "timestampNTZFormat", "timeFormat"),
    Option("timeZone", takes.zone),
    Option("locale", takes.some),
    *taking(takes.encoding, "encoding", "charset", written=_UTF8),
    Option("lineSep", takes.characters, written=_LINES),
    Option("multiLine", takes.boolean),
    Option(
        "compression", takes.one_of(*TEXT_CODECS), meaning="how files are compressed", default="`none`", side="sink"
    ),
    Option("codec", takes.one_of(*TEXT_CODECS)),
    Option("enableDateTimeParsingFallback", takes.boolean),
)

PARQUET_COMPRESSION: Final = Option(
    "compression",
    takes.one_of(*PARQUET_CODECS),
    meaning="how files are compressed",
    default="`snappy`",
    side="sink",
)
PARQUET: Final = Format(
    "parquet",
    options_of(
        *_COMMON,
        PARQUET_COMPRESSION,
        Option("parquet.compression", takes.one_of(*PARQUET_CODECS)),
        Option(
            MODE_OF_RECORDS,
            takes.one_of(*MODES_OF_RECORDS[:2]),
            meaning="if given, `rowtime run --available-now` does not fail (R526) when it could read no file",
            default="none",
            side="source",
        ),
        *taking(_REBASE, "datetimeRebaseMode", "int96RebaseMode"),
        *unused(_DECLARED, "mergeSchema", alike=("false",)),
    ),
    passed="Spark's reader of Parquet files",
)
CSV: Final = Format(
    "csv",
    options_of(
        *_COMMON,
        *_TEXT,
        Option(
            "header",
            takes.boolean,
            meaning="whether the first line of a file has the names of the columns, by which a source then finds them",
            default="`false`",
        ),
        *taking(takes.characters, "sep", "delimiter", written=takes.character),
        *taking(takes.few_characters, "quote", "escape", "charToEscapeQuoteEscaping", "comment"),
        *taking(takes.boolean, "enforceSchema", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"),
        *taking(takes.anything, "nullValue", "emptyValue", "nanValue", "positiveInf", "negativeInf"),
        Option("maxColumns", takes.whole(1)),
        Option("maxCharsPerColumn", takes.whole(-1)),
        Option("unescapedQuoteHandling", takes.one_of(*_UNESCAPED)),
        *taking(takes.boolean, "escapeQuotes", "quoteAll"),
        *unused(_DECLARED, "preferDate", alike=("true", "false")),
        *unused("it is for tests of Spark", "columnPruning", "inputBufferSize", "extension"),
    ),
    passed="Spark's reader and writer of CSV files",
)
JSON: Final = Format(
    "json",
    options_of(
        *_COMMON,
        *_TEXT,
        *json_values.OPTIONS,
        *taking(takes.boolean, "allowComments", "allowUnquotedFieldNames", "allowSingleQuotes"),
        *taking(takes.boolean, "allowNumericLeadingZeros", "allowNonNumericNumbers"),
        *taking(takes.boolean, "allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars", "ignoreNullFields"),
        *taking(takes.boolean, "sortKeys", "writeNonAsciiCharacterAsCodePoint"),
        *unused(_DECLARED, "primitivesAsString", "prefersDecimal", "inferTimestamp", "dropFieldIfAllNull"),
        *unused("each row is one line", "pretty", alike=("false",)),
        *unused("it is for tests of Spark", "useUnsafeRow", "explodeEmbeddedArray"),
    ),
    passed="Spark's reader and writer of JSON files",
)

OF_ROWTIME: Final = frozenset(
    {"path", "rowtime.column", "ordered", ROWS_PER_FILE.lower(), PARTITIONS.lower(), ENDS, GROWING, *json_values.NAMES}
)
"""Options of rowtime: Spark's readers and writers do not get them."""
GLOB: Final = "pathglobfilter"
WRITES: Final = {
    "csv": (
        *("sep", "delimiter", "quote", "escape", "charToEscapeQuoteEscaping", "nullValue", "emptyValue", "dateFormat"),
        *("timestampFormat", "timestampNTZFormat", "timeFormat", "timeZone", "locale", "escapeQuotes", "quoteAll"),
        *("ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"),
    ),
    "json": (
        *("dateFormat", "timestampFormat", "timestampNTZFormat", "timeFormat", "timeZone", "locale"),
        *("ignoreNullFields", "sortKeys", "writeNonAsciiCharacterAsCodePoint"),
    ),
}
"""Options for Spark's ``to_csv`` and ``to_json`` in a stream to which a pump writes."""


def names_of(glob: str) -> partial[bool]:
    """Return a test of file names for a glob: ``*``, ``?``, ``[a-z]`` and ``{csv,txt}``."""
    braces = re.search(r"\{([^{}]*)\}", glob)
    if braces is None:
        return partial(_fits, (glob,))
    parts = (names_of(f"{glob[: braces.start()]}{part}{glob[braces.end() :]}") for part in braces[1].split(","))
    return partial(_fits, tuple(glob for part in parts for glob in part.args[0]))


def _fits(globs: Sequence[str], name: str) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)
