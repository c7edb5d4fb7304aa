-- Average closing price by category. Given an interval bound, and a key bound.
--
-- Bids meet their auction while it is open, ten seconds at most. In the rows of the join the auctions' times are out of
-- order by as much, so their groups close WITHIN as much, and no bid is late. The average over all auctions so far
-- never ends: it is a running one, of one accumulator a category, and each closed auction sends it anew.
CREATE VIEW closed AS
SELECT STREAM a.id, a.category, MAX(b.price) AS final
FROM auction AS a JOIN bid AS b
  ON b.auction = a.id AND b.ROWTIME BETWEEN a.ROWTIME AND a.ROWTIME + INTERVAL '10' SECOND AND b.dateTime <= a.expires
GROUP BY FLOOR(a.dateTime TO SECOND) WITHIN INTERVAL '10' SECOND, a.id, a.category;

SELECT STREAM id, category, AVG(final) OVER (PARTITION BY category) AS average FROM closed;
