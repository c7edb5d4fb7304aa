WITH bids AS (
  SELECT w.start AS window_start, w.end AS window_end, auction, COUNT(*) AS num
  FROM (SELECT window(dateTime, '10 seconds', '2 seconds') AS w, auction FROM bid) GROUP BY w, auction
)
SELECT b.window_start, b.window_end, b.auction, b.num
FROM bids AS b JOIN (SELECT window_start, window_end, MAX(num) AS most FROM bids GROUP BY window_start, window_end) AS m
  ON b.window_start = m.window_start AND b.window_end = m.window_end AND b.num >= m.most
