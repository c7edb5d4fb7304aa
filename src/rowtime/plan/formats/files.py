"""Options of directories of Parquet, CSV and JSON files: rowtime's own, and those of Spark's readers and writers."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Final

from rowtime.plan.finite import ENDS
from rowtime.plan.formats import contract as takes
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
"""Spark's names of the ways to compress Parquet that rowtime writes, and Arrow's."""
TEXT_CODECS: Final = {"none": "", "uncompressed": "", "gzip": ".gz", "bzip2": ".bz2"}
"""Ways to compress text files, and the endings by which readers know them."""

ORDERED: Final = Option("ordered", takes.boolean)
ROWTIME_COLUMN: Final = Option("rowtime.column", takes.anything)
ROWS_PER_FILE: Final = "maxRecordsPerFile"
PARTITIONS: Final = "partitionBy"
"""What ``PARTITIONED BY (a, b)`` is among the options of a stream."""
DIRECTORIES: Final = frozenset({"parquet", "csv", "json"})
_UTF8: Final = takes.one_of("UTF-8", "UTF8")
_LINES: Final = takes.one_of("\n", "\\n")
_DECLARED: Final = "CREATE STREAM declares the columns and their types"
_UNESCAPED: Final = ("STOP_AT_CLOSING_QUOTE", "BACK_TO_DELIMITER", "STOP_AT_DELIMITER", "SKIP_VALUE", "RAISE_ERROR")
_REBASE: Final = takes.one_of("EXCEPTION", "CORRECTED", "LEGACY")

_COMMON: Final = (
    Option("path", takes.some),
    ROWTIME_COLUMN,
    ORDERED,
    Option(ROWS_PER_FILE, takes.whole(1000)),
    Option(PARTITIONS, takes.some),
    Option(ENDS, takes.anything),  # `check_ends` looks at it
    Option("pathGlobFilter", takes.some),
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
GROWING: Final = "growing"
"""The option of a source whose files get more lines after they have been read."""
_TEXT: Final = (
    Option(GROWING, takes.boolean),
    *unused(_DECLARED, "inferSchema", alike=("false",)),
    *unused(_DECLARED, "samplingRatio", "singleVariantColumn"),
    *unused("what does not decode is MALFORMED in the ledger", "mode", alike=("permissive",)),
    *unused("the text of a malformed record is in name.rejected", "columnNameOfCorruptRecord"),
    *taking(takes.pattern, "dateFormat", "timestampFormat", "timestampNTZFormat", "timeFormat"),
    Option("timeZone", takes.zone),
    Option("locale", takes.some),
    *taking(takes.encoding, "encoding", "charset", written=_UTF8),
    Option("lineSep", takes.characters, written=_LINES),
    Option("multiLine", takes.boolean),
    *taking(takes.one_of(*TEXT_CODECS), "compression", "codec"),
    Option("enableDateTimeParsingFallback", takes.boolean),
)

PARQUET: Final = Format(
    "parquet",
    options_of(
        *_COMMON,
        *taking(takes.one_of(*PARQUET_CODECS), "compression", "parquet.compression"),
        *taking(_REBASE, "datetimeRebaseMode", "int96RebaseMode"),
        *unused(_DECLARED, "mergeSchema", alike=("false",)),
    ),
)
CSV: Final = Format(
    "csv",
    options_of(
        *_COMMON,
        *_TEXT,
        Option("header", takes.boolean),
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
)
JSON: Final = Format(
    "json",
    options_of(
        *_COMMON,
        *_TEXT,
        *taking(takes.boolean, "allowComments", "allowUnquotedFieldNames", "allowSingleQuotes"),
        *taking(takes.boolean, "allowNumericLeadingZeros", "allowNonNumericNumbers"),
        *taking(takes.boolean, "allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars", "ignoreNullFields"),
        *taking(takes.boolean, "sortKeys", "writeNonAsciiCharacterAsCodePoint"),
        *unused(_DECLARED, "primitivesAsString", "prefersDecimal", "inferTimestamp", "dropFieldIfAllNull"),
        *unused("each row is one line", "pretty", alike=("false",)),
        *unused("it is for tests of Spark", "useUnsafeRow", "explodeEmbeddedArray"),
    ),
)

OF_ROWTIME: Final = frozenset(
    {"path", "rowtime.column", "ordered", ROWS_PER_FILE.lower(), PARTITIONS.lower(), ENDS, GROWING}
)
"""Options that are rowtime's own: Spark's readers and writers do not see them."""
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
"""Options that Spark's ``to_csv`` and ``to_json`` are given where a pump writes."""


def names_of(glob: str) -> Callable[[str], bool]:
    """Which names of files a glob means: ``*``, ``?``, ``[a-z]`` and ``{csv,txt}``."""
    found = re.search(r"\{([^{}]*)\}", glob)
    if found is None:
        return lambda name: fnmatchcase(name, glob)
    parts = [names_of(f"{glob[: found.start()]}{part}{glob[found.end() :]}") for part in found[1].split(",")]
    return lambda name: any(part(name) for part in parts)
