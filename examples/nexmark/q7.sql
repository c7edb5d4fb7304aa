-- Highest bid of every ten seconds. Accepted as it is: the condition on the rowtimes is the original's.
--
-- A window's row has its end as rowtime, so its bids are those of the ten seconds before. Bids are kept that long.
SELECT STREAM b.auction, b.price, b.bidder, b.dateTime
FROM bid AS b JOIN (
  SELECT STREAM window_end, MAX(price) AS highest
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ROWTIME), INTERVAL '10' SECOND)) AS w GROUP BY window_start, window_end
) AS m ON b.price = m.highest
WHERE b.ROWTIME >= m.ROWTIME - INTERVAL '10' SECOND AND b.ROWTIME < m.ROWTIME;
