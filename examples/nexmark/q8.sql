-- New users who opened an auction within the same ten seconds. Accepted as it is.
--
-- Both inputs are groups of a window, with its end as rowtime, so the rows that meet have equal rowtimes.
SELECT STREAM p.id, p.name, p.window_start
FROM (
  SELECT STREAM window_start, window_end, id, name
  FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(ROWTIME), INTERVAL '10' SECOND)) AS w
  GROUP BY window_start, window_end, id, name
) AS p JOIN (
  SELECT STREAM window_start, window_end, seller
  FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(ROWTIME), INTERVAL '10' SECOND)) AS w
  GROUP BY window_start, window_end, seller
) AS a ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end;
