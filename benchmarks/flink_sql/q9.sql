SELECT id, seller, category, reserve, expires, opened, bidder, price, bidtime
FROM (
  SELECT a.id, a.seller, a.category, a.reserve, a.expires, a.`dateTime` AS opened,
    b.bidder, b.price, b.`dateTime` AS bidtime,
    ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.`dateTime` ASC) AS place
  FROM auction AS a, bid AS b
  WHERE a.id = b.auction AND b.`dateTime` BETWEEN a.`dateTime` AND a.expires
) WHERE place <= 1
