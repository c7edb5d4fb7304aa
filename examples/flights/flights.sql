-- Departures per airport, hour and carrier, from records that arrive when a flight has landed.
--
-- Run it with the records of feed.py (python -m examples.flights does both), or alone:
--   rowtime run examples/flights/flights.sql --home HOME --checkpoint DIR --available-now --set output=DIR

-- Three streams, one an airport. Each has a pseudo-column ROWTIME, the timestamp that orders
-- it: here the time at which the record was delivered, which is when the flight ended.
-- The departure is an ordinary column: null for a cancelled flight, and not in order, since
-- a short flight that left later lands earlier.
CREATE STREAM ewr (
    carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
    dep_delay INT, arr_delay INT, air_time INT, distance INT, departure TIMESTAMP
);
CREATE STREAM jfk (
    carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
    dep_delay INT, arr_delay INT, air_time INT, distance INT, departure TIMESTAMP
);
CREATE STREAM lga (
    carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
    dep_delay INT, arr_delay INT, air_time INT, distance INT, departure TIMESTAMP
);

-- A T-sort makes the departure the new ROWTIME. WITHIN says how far out of order it may be: a
-- record is LATE if its departure + 6 hours lies before the greatest departure seen earlier
-- on its stream. Whatever is accepted comes out in order.
--
-- Why 6 hours? A tolerance costs waiting: no hour is counted before departures 6 hours past
-- its end have been seen. Of the 328,521 flights that left, these would be late:
--      2 h: 86,102    4 h: 36,275    5 h: 5,678    6 h: 732    8 h: 676    10 h: 36    11 h: 0
-- Nearly every flight to the west coast is in the air for less than 6 hours. What is still
-- late are those to Honolulu (698 of the 732), for which one would have to wait 11 hours.
--
-- Late records (LATE) and cancelled flights (NULL_ROWTIME: they have no departure) are not
-- lost: they are counted and kept, and can be read as ewr_departures.rejected and so on.
CREATE VIEW ewr_departures AS
SELECT STREAM f.departure AS ROWTIME, f.origin, f.carrier
FROM ewr AS f
ORDER BY f.departure WITHIN INTERVAL '6' HOUR;

CREATE VIEW jfk_departures AS
SELECT STREAM f.departure AS ROWTIME, f.origin, f.carrier
FROM jfk AS f
ORDER BY f.departure WITHIN INTERVAL '6' HOUR;

CREATE VIEW lga_departures AS
SELECT STREAM f.departure AS ROWTIME, f.origin, f.carrier
FROM lga AS f
ORDER BY f.departure WITHIN INTERVAL '6' HOUR;

-- UNION ALL of streams merges in the order of ROWTIME; it waits for the slowest of the three.
CREATE VIEW departures AS
SELECT STREAM origin, carrier FROM ewr_departures
UNION ALL
SELECT STREAM origin, carrier FROM jfk_departures
UNION ALL
SELECT STREAM origin, carrier FROM lga_departures;

-- Where the result goes: Parquet files, in a directory given by --set output=DIR. They have
-- a column rowtime beside these, the end of the hour.
CREATE STREAM hourly (hour TIMESTAMP, origin STRING, carrier STRING, departures BIGINT)
USING parquet OPTIONS (path '${output}');

-- A stream has no end to wait for, so GROUP BY needs an expression that ascends with time.
-- FLOOR(ROWTIME TO HOUR) does: once a departure of the next hour comes out of the merge, an
-- hour is complete. It is written once, and never changed afterwards.
CREATE PUMP count_departures AS
INSERT INTO hourly
SELECT STREAM FLOOR(d.ROWTIME TO HOUR) AS hour, d.origin, d.carrier, COUNT(*) AS departures
FROM departures AS d
GROUP BY FLOOR(d.ROWTIME TO HOUR), d.origin, d.carrier;
