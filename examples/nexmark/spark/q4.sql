SELECT id, category, AVG(final) OVER (
  PARTITION BY category ORDER BY date_trunc('SECOND', opened), id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
) AS average
FROM (
  SELECT a.id, a.category, a.dateTime AS opened, MAX(b.price) AS final
  FROM auction AS a JOIN bid AS b ON a.id = b.auction
  WHERE b.dateTime BETWEEN a.dateTime AND a.expires
  GROUP BY a.id, a.category, a.dateTime
)
