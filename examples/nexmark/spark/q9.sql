SELECT id, seller, category, reserve, expires, opened, bidder, price, bidtime
FROM (
  SELECT a.id, a.seller, a.category, a.reserve, a.expires, a.dateTime AS opened,
    b.bidder, b.price, b.dateTime AS bidtime,
    ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.dateTime) AS place
  FROM auction AS a JOIN bid AS b ON a.id = b.auction
  WHERE b.dateTime BETWEEN a.dateTime AND a.expires
) WHERE place = 1
