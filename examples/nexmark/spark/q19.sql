SELECT auction, SORT_ARRAY(COLLECT_LIST(STRUCT(price, bidder, dateTime)), FALSE) AS highest
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, bidder DESC, dateTime DESC) AS place
  FROM bid
) WHERE place <= 10 GROUP BY auction
