-- Auction statistics of each day. Given an interval bound, as q15; here a partial result a group is kept.
SELECT STREAM auction, DATE_FORMAT(FLOOR(b.ROWTIME TO DAY), 'yyyy-MM-dd') AS day,
  COUNT(*) AS total_bids,
  COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
  COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
  COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
  MIN(price) AS min_price, MAX(price) AS max_price, AVG(price) AS avg_price, SUM(price) AS sum_price
FROM bid AS b GROUP BY auction, FLOOR(b.ROWTIME TO DAY);
