SELECT b.auction, b.price, b.bidder, b.dateTime
FROM bid AS b JOIN (
  SELECT w.end AS window_end, MAX(price) AS highest
  FROM (SELECT window(dateTime, '10 seconds') AS w, price FROM bid) GROUP BY w
) AS m ON b.price = m.highest
WHERE b.dateTime >= m.window_end - INTERVAL '10' SECOND AND b.dateTime < m.window_end
