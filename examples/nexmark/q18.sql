-- The last bid of each bidder on each auction. WITH UNBOUNDED STATE: a bidder may always bid once more.
--
-- Which bid was the last is only known when there can be no other, and only the end of the stream says so. Add
-- FLOOR(ROWTIME TO HOUR) to GROUP BY for the last bid of each hour: then each goes out and is forgotten.
SELECT STREAM auction, bidder, LAST(price) AS price, LAST(channel) AS channel, LAST(url) AS url,
  LAST(dateTime) AS dateTime, LAST(extra) AS extra
FROM bid GROUP BY bidder, auction WITH UNBOUNDED STATE;
