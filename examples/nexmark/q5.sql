-- Hot items: the auctions with the most bids in the last ten seconds, every two seconds. Accepted as it is.
--
-- The windows close with time, and the two groups of one window have one rowtime, its end, so the join needs no range.
-- bids is used twice and computed once.
CREATE VIEW bids AS
SELECT STREAM window_start, window_end, auction, COUNT(*) AS num
FROM TABLE(HOP(TABLE bid, DESCRIPTOR(ROWTIME), INTERVAL '2' SECOND, INTERVAL '10' SECOND)) AS w
GROUP BY window_start, window_end, auction;

SELECT STREAM b.window_start, b.window_end, b.auction, b.num
FROM bids AS b JOIN (
  SELECT STREAM window_start, window_end, MAX(num) AS most FROM bids GROUP BY window_start, window_end
) AS m ON b.window_start = m.window_start AND b.window_end = m.window_end AND b.num >= m.most;
