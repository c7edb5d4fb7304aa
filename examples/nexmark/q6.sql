-- Average selling price by seller over the ten auctions before and this one. Given an interval bound, and a key bound.
--
-- As in q4 bids meet their auction while it is open, ten seconds at most. The closed auctions are sorted by when they
-- expired, and then ROWS keeps ten rows a seller.
CREATE VIEW closed AS
SELECT STREAM a.id, a.seller, FIRST(a.expires) AS expires, MAX(b.price) AS final
FROM auction AS a JOIN bid AS b
  ON b.auction = a.id AND b.ROWTIME BETWEEN a.ROWTIME AND a.ROWTIME + INTERVAL '10' SECOND AND b.dateTime <= a.expires
GROUP BY FLOOR(a.dateTime TO SECOND) WITHIN INTERVAL '10' SECOND, a.id, a.seller;

CREATE VIEW sold AS
SELECT STREAM expires AS ROWTIME, id, seller, final FROM closed ORDER BY expires WITHIN INTERVAL '11' SECOND, id;

SELECT STREAM id, seller, AVG(final) OVER (PARTITION BY seller ROWS 10 PRECEDING) AS average FROM sold;
