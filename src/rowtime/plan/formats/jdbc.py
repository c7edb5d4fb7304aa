"""Options of tables of databases: rowtime's own, those of Spark's writer, and those of the drivers."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rowtime.plan.formats import contract as takes
from rowtime.plan.formats.contract import Format, Option, anything, options_of, some, taking, unused, words
from rowtime.plan.formats.files import KEY, MODE, ORDERED, ROWTIME_WRITTEN

_READS: Final = "rowtime writes to databases, but does not read them as streams"
_STAGE: Final = "rows go through a staging table, which is created again for each tick"
POSTGRESQL: Final = words("""
    ApplicationName PGDBNAME PGHOST PGPORT adaptiveFetch adaptiveFetchMaximum adaptiveFetchMinimum
    allowEncodingChanges assumeMinServerVersion authenticationPluginClassName autosave binaryTransfer
    binaryTransferDisable binaryTransferEnable cancelSignalTimeout channelBinding cleanupSavepoints connectTimeout
    currentSchema databaseMetadataCacheFields databaseMetadataCacheFieldsMiB defaultRowFetchSize
    disableColumnSanitiser escapeSyntaxCallMode groupStartupParameters gssEncMode gssResponseTimeout
    gssUseDefaultCreds gsslib hideUnprivilegedObjects hostRecheckSeconds jaasApplicationName jaasLogin
    kerberosServerName loadBalanceHosts localSocketAddress logServerErrorDetail logUnclosedConnections loggerFile
    loggerLevel loginTimeout maxResultBuffer maxSendBufferSize options preferQueryMode prepareThreshold
    preparedStatementCacheQueries preparedStatementCacheSizeMiB protocolVersion quoteReturningIdentifiers
    reWriteBatchedInserts readOnly readOnlyMode receiveBufferSize replication sendBufferSize service socketFactory
    socketFactoryArg socketTimeout ssl sslNegotiation sslResponseTimeout sslcert sslfactory sslfactoryarg
    sslhostnameverifier sslkey sslmode sslpassword sslpasswordcallback sslrootcert sspiServiceClass stringtype
    targetServerType tcpKeepAlive tcpNoDelay unknownLength useSpnego xmlFactoryFactory
""")
"""The options of PostgreSQL's driver (42.7)."""

_ISOLATIONS: Final = ("READ_COMMITTED", "READ_UNCOMMITTED", "REPEATABLE_READ", "SERIALIZABLE")
_OURS: Final = (
    Option("url", some, meaning="the JDBC URL of the database", default="required", side="sink"),
    Option("dbtable", some, meaning="the table, with its schema if it has one", default="required", side="sink"),
    MODE,
    KEY,
    Option(
        "driver",
        some,
        meaning="the class of the JDBC driver",
        default="known for PostgreSQL and MySQL",
        values="the name of a class",
        side="sink",
    ),
    ROWTIME_WRITTEN,
    replace(ORDERED, default="`true`"),
)
_SPARKS: Final = (
    *taking(anything, "user", "password"),
    Option("batchsize", takes.whole(1)),
    Option("isolationLevel", takes.one_of("NONE", *_ISOLATIONS)),
    Option("numPartitions", takes.whole(1)),
    Option("queryTimeout", takes.whole(0)),
    *taking(some, "createTableColumnTypes", "createTableOptions", "connectionProvider", "keytab", "principal"),
    Option("refreshKrb5Config", takes.boolean),
    *unused(_STAGE, "truncate", "cascadeTruncate"),
    *unused(
        _READS,
        *("query", "partitionColumn", "lowerBound", "upperBound", "fetchsize", "prepareQuery", "sessionInitStatement"),
        *("customSchema", "pushDownPredicate", "pushDownAggregate", "pushDownLimit", "pushDownOffset"),
        *("pushDownTableSample", "preferTimestampNTZ", "hint", "createTempView"),
    ),
)


def _other(driver: str, names: Sequence[str]) -> Format:
    """Return the options of a driver with ``names``; for an unknown driver all pass but misspellings."""
    options = options_of(*_OURS, *_SPARKS, *taking(anything, *names))

    def refused(name: str, given: Sequence[str]) -> str | None:
        del given
        near = difflib.get_close_matches(name.lower(), list(options), n=1, cutoff=0.85)
        if names:
            return f"neither jdbc nor the driver of {driver} has an option {name}"
        return f"jdbc has no option {name}" if near else None

    more = Option("…", anything, meaning="any property of another driver", side="sink")
    return Format("jdbc", options, refused, (more,), "Spark's JDBC writer and the driver of PostgreSQL")


JDBC: Final = _other("PostgreSQL", POSTGRESQL)
OTHER_DRIVERS: Final = _other("", ())


def of_url(url: str) -> Format:
    """Return the options of a table at a URL."""
    return JDBC if not url or url.startswith("jdbc:postgresql:") else OTHER_DRIVERS
