-- Bids with their auction, of category 10. Given an interval bound: bids come within ten seconds of their auction.
--
-- The original keeps every bid and every auction forever. A join as of the bid's time, as in q3, would do as well.
SELECT STREAM b.auction, b.bidder, b.price, b.channel, b.url, b.dateTime, b.extra,
  a.itemName, a.description, a.initialBid, a.reserve, a.dateTime AS opened, a.expires, a.seller, a.category
FROM auction AS a JOIN bid AS b
  ON b.auction = a.id AND b.ROWTIME BETWEEN a.ROWTIME AND a.ROWTIME + INTERVAL '10' SECOND
WHERE a.category = 10;
