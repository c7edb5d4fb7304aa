-- Winning bids: of each auction the highest bid while it was open, the earliest of equal ones. Given an interval bound.
--
-- As in q4: ten seconds. ROW_NUMBER() … <= 1 by price is MIN_BY of what falls with it, which takes the first of equals.
CREATE VIEW offers AS
SELECT STREAM a.id, a.seller, a.category, a.reserve, a.expires, a.dateTime AS opened,
  b.bidder, b.price, b.dateTime AS bidtime
FROM auction AS a JOIN bid AS b
  ON b.auction = a.id AND b.ROWTIME BETWEEN a.ROWTIME AND a.ROWTIME + INTERVAL '10' SECOND AND b.dateTime <= a.expires;

SELECT STREAM id, FIRST(seller) AS seller, FIRST(category) AS category, FIRST(reserve) AS reserve,
  FIRST(expires) AS expires, FIRST(opened) AS opened,
  MIN_BY(bidder, -price) AS bidder, MAX(price) AS price, MIN_BY(bidtime, -price) AS bidtime
FROM offers GROUP BY FLOOR(opened TO SECOND) WITHIN INTERVAL '10' SECOND, id;
