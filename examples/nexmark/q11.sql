-- How many bids a user made in each session. Accepted as it is: a session ends ten seconds after its last bid.
SELECT STREAM bidder, COUNT(*) AS bids, SESSION_START(b.ROWTIME, INTERVAL '10' SECOND) AS starttime,
  SESSION_END(b.ROWTIME, INTERVAL '10' SECOND) AS endtime
FROM bid AS b GROUP BY bidder, SESSION(b.ROWTIME, INTERVAL '10' SECOND);
