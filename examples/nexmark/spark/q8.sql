SELECT p.id, p.name, p.w.start AS window_start
FROM (SELECT w, id, name FROM (SELECT window(dateTime, '10 seconds') AS w, id, name FROM person) GROUP BY w, id, name) AS p
JOIN (SELECT w, seller FROM (SELECT window(dateTime, '10 seconds') AS w, seller FROM auction) GROUP BY w, seller) AS a
  ON p.id = a.seller AND p.w = a.w
