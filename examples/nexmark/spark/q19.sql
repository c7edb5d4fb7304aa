SELECT auction, COLLECT_LIST(offer) AS highest
FROM (
  SELECT * FROM (
    SELECT auction, STRUCT(price, bidder, dateTime) AS offer,
      ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, bidder DESC, dateTime DESC) AS place
    FROM bid
  ) WHERE place <= 10 DISTRIBUTE BY auction SORT BY auction, place
) GROUP BY auction
