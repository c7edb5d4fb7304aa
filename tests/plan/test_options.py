"""Unknown options of sources and sinks, and invalid values, are refused at their place."""

from __future__ import annotations

import pytest

import rowtime as rt
from rowtime.plan.formats import FORMATS
from rowtime.plan.formats.files import names_of

PUMP = " CREATE STREAM a (s STRING); CREATE PUMP p AS INSERT INTO x SELECT STREAM s FROM a;"


def problems(using: str, more: str = "") -> list[rt.Problem]:
    found: list[rt.Problem] = rt.check(f"CREATE STREAM x (s STRING)\n  USING {using};{more}")
    return found


@pytest.mark.parametrize(
    ("using", "code", "said"),
    [
        ("csv OPTIONS (path '/x', haeder 'true')", "R540", "Did you mean header?"),
        ("csv OPTIONS (pth '/x')", "R540", "Did you mean path?"),
        ("json OPTIONS (path '/x', compresion 'gzip')", "R540", "Did you mean compression?"),
        ("parquet OPTIONS (path '/x', blah 1)", "R540", "There are: path, "),
        ("parquet OPTIONS (path '/x', partitionOverwriteMode 'static')", "R542", "never replaced"),
        ("parquet OPTIONS (path '/x', compression 'zstdd')", "R541", "Did you mean zstd?"),
        ("csv OPTIONS (path '/x', header 'yes')", "R541", "header takes true or false"),
        ("csv OPTIONS (path '/x', inferSchema 'true')", "R542", "declares the columns"),
        ("csv OPTIONS (path '/x', mode 'DROP')", "R541", "PERMISSIVE, DROPMALFORMED or FAILFAST"),
        ("csv OPTIONS (path '/x', timestampFormat 'yyyy-MM-ddThh')", "R541", "a pattern of dates"),
        ("json OPTIONS (path '/x', timeZone 'Mars/Olympus')", "R541", "a time zone"),
        ("csv OPTIONS (path '/x', maxColumns 'many')", "R541", "a whole number from 1"),
        ("csv OPTIONS (path '/x', encoding 'utf-88')", "R541", "a character set"),
        ("csv OPTIONS (path '/x', header true, HEADER false)", "R541", "given twice"),
        ("kafka OPTIONS (kafka.bootstrap.server 'h:1')", "R540", "Did you mean kafka.bootstrap.servers?"),
        ("kafka OPTIONS (startingOffset 'earliest')", "R540", "Did you mean startingOffsets?"),
        ("kafka OPTIONS (startingOffsets 'oldest')", "R541", "earliest or latest"),
        ("kafka OPTIONS (assign '[1]')", "R541", "JSON of topics"),
        ("kafka OPTIONS (kafka.auto.offset.reset 'latest')", "R542", "startingOffsets says"),
        ("kafka OPTIONS (kafka.security.protocol 'SASL')", "R541", "SASL_SSL"),
        ("kafka OPTIONS (kafka.request.timeout.ms 'soon')", "R541", "a whole number"),
        ("kafka OPTIONS (format 'arvo')", "R541", "Did you mean avro?"),
        ("kafka OPTIONS (schema.registry.uri 'mock://x')", "R540", "Did you mean schema.registry.url?"),
        ("kafka OPTIONS (schema.registry.url 'host:8081')", "R541", "http://host:8081, https://… or mock://name"),
        ("kafka OPTIONS (schema.registry.url 'mock://a/b')", "R541", "a name of letters"),
        ("jdbc OPTIONS (url 'jdbc:postgresql://h/d', dbtabel 't')", "R540", "Did you mean dbtable?"),
        ("jdbc OPTIONS (url 'jdbc:mysql://h/d', dbtabel 't')", "R540", "Did you mean dbtable?"),
        ("jdbc OPTIONS (url 'jdbc:postgresql://h/d', query 'SELECT 1')", "R542", "does not read them as streams"),
        ("rate OPTIONS (rowsPerSecond 0)", "R541", "a whole number from 1"),
        ("rate OPTIONS (rampUpTime '5s')", "R542", "at one rate"),
    ],
)
def test_an_unknown_option_was_accepted_and_ignored(using: str, code: str, said: str) -> None:
    (problem,) = problems(using)
    assert problem.code == code
    assert said in f"{problem.message} {problem.hint}"
    assert problem.place is not None
    last = using[using.rindex(" ") + 1 :].strip("')")
    before, _, after = using.rpartition(last)
    shown = f"{before}{'*' * len(last)}{after}" if code == "R540" else using  # a name that nobody knows
    assert (problem.place.line, problem.place.text) == (2, f"  USING {shown};")


def test_the_caret_points_at_the_name_or_at_the_value() -> None:
    named, valued = problems("csv OPTIONS (path 'x', haeder 'true',\n    quoteAll 'ja')")
    assert (named.place.line, named.place.column, named.place.length) == (2, 32, 6)
    assert (valued.place.line, valued.place.column, valued.place.length) == (3, 14, 4)


def test_options_of_a_stream_log_were_ignored() -> None:
    (problem,) = rt.check("CREATE STREAM s (v INT) OPTIONS (path '/x')")
    assert problem.code == "R540"


@pytest.mark.parametrize(
    "using",
    [
        "csv OPTIONS (path '/x', Header 'TRUE', sep '\\t', nullValue '', inferSchema 'false', mode 'permissive')",
        "json OPTIONS (PATH '/x', dateFormat 'dd.MM.yyyy', recursiveFileLookup true, compression 'gzip')",
        "parquet OPTIONS (path '/x', ordered 'false', rowtime.column '', compression 'ZSTD', datetimeRebaseMode LEGACY)"
        .replace("LEGACY", "'LEGACY'"),
        "kafka OPTIONS (kafka.bootstrap.servers 'h:1', subscribe 't', kafka.sasl.jaas.config 'x', minPartitions 3)",
        "kafka OPTIONS (kafka.sasl.login.callback.handler.class 'my.Own', kafka.my.own.setting 'x')",
        "jdbc OPTIONS (url 'jdbc:postgresql:d', dbtable 't', ssl true, batchsize 500, reWriteBatchedInserts true)",
        "jdbc OPTIONS (url 'jdbc:oracle:thin:@h', dbtable 't', driver 'o.D', oracle.net.CONNECT_TIMEOUT 5)",
    ],
)  # fmt: skip
def test_options_that_are_known_are_accepted(using: str) -> None:
    assert problems(using) == []


def test_a_table_takes_the_options_of_sparks_readers() -> None:
    sql = "CREATE TABLE t (k INT) USING {}"
    assert rt.check(sql.format("csv OPTIONS (path '/x', mode 'DROPMALFORMED', inferSchema true)")) == []
    assert rt.check(sql.format("jdbc OPTIONS (url 'jdbc:postgresql:d', query 'SELECT 1', fetchsize 10)")) == []
    assert rt.check(sql.format("delta OPTIONS (path '/x', versionAsOf 3)")) == []
    (slip,) = rt.check(sql.format("csv OPTIONS (path '/x', haeder true)"))
    (format_,) = rt.check(sql.format("parqet OPTIONS (path '/x')"))
    assert (slip.code, format_.code, format_.hint[:21]) == ("R540", "R210", "Did you mean parquet?")


def test_options_for_reading_only_are_refused_for_a_pump() -> None:
    using = "csv OPTIONS (path '/x', encoding 'UTF-16', sep '||')"
    assert problems(using, " CREATE VIEW v AS SELECT STREAM s FROM x") == []
    assert [problem.code for problem in problems(using, PUMP)] == ["R541", "R541"]


def test_a_path_or_a_topic_that_is_missing_is_found_before_a_start() -> None:
    reads = " CREATE VIEW v AS SELECT STREAM s FROM x"
    assert [p.code for p in problems("csv OPTIONS (header true)", reads)] == ["R207"]
    assert [p.code for p in problems("json", PUMP)] == ["R207"]
    assert [p.code for p in problems("kafka OPTIONS (topic 't')", reads)] == ["R504", "R504"]


def test_options_keep_their_meaning_in_any_case() -> None:
    made = rt.Pipeline().sql("CREATE STREAM x (s STRING) USING json OPTIONS (PATH '/x', Rowtime.Column 'at')").compile()
    assert made.defines[0].options == (("path", "/x"), ("rowtime.column", "at"))


def test_a_glob_chooses_files_by_their_names() -> None:
    names = ["a.csv", "b.txt", "c.gz", "x.csv.gz"]
    assert [name for name in names if names_of("*.{csv,txt}")(name)] == ["a.csv", "b.txt"]
    assert [name for name in names if names_of("[ax].csv*")(name)] == ["a.csv", "x.csv.gz"]


@pytest.mark.parametrize("name", ["csv", "json", "parquet"])
def test_every_option_of_sparks_readers_and_writers_is_on_the_list(name: str) -> None:
    assert set(OF_SPARK[name].split()) <= {option.name for option in FORMATS[name].options.values()}


# From Spark 4.3: CSVOptions.getAllOptions, and the same for JSON and Parquet.
OF_SPARK = {
    "csv": """charToEscapeQuoteEscaping charset codec columnNameOfCorruptRecord columnPruning comment compression
        dateFormat delimiter emptyValue enableDateTimeParsingFallback encoding enforceSchema escape escapeQuotes
        extension
        header ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace inferSchema inputBufferSize lineSep locale
        maxCharsPerColumn maxColumns mode multiLine nanValue negativeInf nullValue positiveInf preferDate quote quoteAll
        samplingRatio sep singleVariantColumn timeFormat timeZone timestampFormat timestampNTZFormat
        unescapedQuoteHandling""",
    "json": """allowBackslashEscapingAnyCharacter allowComments allowNonNumericNumbers allowNumericLeadingZeros
        allowSingleQuotes allowUnquotedControlChars allowUnquotedFieldNames charset columnNameOfCorruptRecord
        compression
        dateFormat dropFieldIfAllNull enableDateTimeParsingFallback encoding explodeEmbeddedArray ignoreNullFields
        inferTimestamp lineSep locale mode multiLine prefersDecimal pretty primitivesAsString samplingRatio
        singleVariantColumn sortKeys timeFormat timeZone timestampFormat timestampNTZFormat useUnsafeRow
        writeNonAsciiCharacterAsCodePoint""",
    "parquet": "compression datetimeRebaseMode int96RebaseMode mergeSchema parquet.compression",
}


def test_two_streams_of_one_topic_would_not_be_in_one_order() -> None:
    kafka = "USING kafka OPTIONS (kafka.bootstrap.servers 'h:1', topic 't')"
    sql = f"CREATE STREAM a (s STRING); CREATE STREAM o (s STRING) {kafka}; CREATE STREAM p (s STRING) {kafka};"
    (problem,) = rt.check(f"{sql} INSERT INTO o SELECT STREAM s FROM a;\nINSERT INTO p SELECT STREAM s FROM a")
    assert problem.code == "R546"
    assert problem.place is not None
    assert (problem.place.line, problem.place.column) == (2, 13)
