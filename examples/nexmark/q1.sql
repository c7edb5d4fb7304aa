-- Currency conversion. Accepted as it is: keeps nothing.
SELECT STREAM auction, bidder, 0.908 * price AS price, dateTime, extra FROM bid;
