SELECT b.auction, b.price, b.bidder, b.`dateTime`
FROM bid AS b JOIN (
  SELECT MAX(price) AS highest, window_end AS ended
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end
) AS m ON b.price = m.highest
WHERE b.`dateTime` BETWEEN m.ended - INTERVAL '10' SECOND AND m.ended
