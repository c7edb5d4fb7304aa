-- The streams of Nexmark, an auction house, over files that `python -m examples.nexmark` makes.
--
-- dateTime is the rowtime, and a column as well: the files have their rows in its order. No auction is open for
-- more than ten seconds; the joins of bids with auctions rest on that, so it is checked: one that breaks it is
-- refused as MALFORMED and kept in auction.rejected.
CREATE STREAM person (
    id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING,
    dateTime TIMESTAMP, extra STRING
) USING parquet OPTIONS (path '${events}/person', rowtime.column 'dateTime');

CREATE STREAM auction (
    id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT,
    dateTime TIMESTAMP, expires TIMESTAMP CHECK (expires <= dateTime + INTERVAL '10' SECOND),
    seller BIGINT, category BIGINT, extra STRING
) USING parquet OPTIONS (path '${events}/auction', rowtime.column 'dateTime');

CREATE STREAM bid (
    auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING,
    dateTime TIMESTAMP, extra STRING
) USING parquet OPTIONS (path '${events}/bid', rowtime.column 'dateTime');

CREATE TABLE side_input (key BIGINT, value STRING) USING parquet OPTIONS (path '${events}/side_input');
