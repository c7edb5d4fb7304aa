-- The ten highest bids of each auction. WITH UNBOUNDED STATE: an auction's bids are not bounded by its end here.
--
-- A row has the ten in one array, for no bid is among the ten for good before the end. q9 shows how to bound it: join
-- the auction, whose bids end with it, and group by its time.
SELECT STREAM auction, SLICE(SORT_ARRAY(COLLECT_LIST(STRUCT(price, bidder, dateTime)), FALSE), 1, 10) AS highest
FROM bid GROUP BY auction WITH UNBOUNDED STATE;
