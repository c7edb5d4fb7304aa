-- Pass through. Accepted as it is: keeps nothing.
SELECT STREAM auction, bidder, price, dateTime, extra FROM bid;
