SELECT bidder, COUNT(*) AS bids, s.start AS starttime, s.end AS endtime
FROM (SELECT session_window(dateTime, '10 seconds') AS s, bidder FROM bid) GROUP BY bidder, s
