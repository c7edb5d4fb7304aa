-- Selection. Accepted as it is: keeps nothing.
SELECT STREAM auction, price FROM bid WHERE auction % 123 = 0;
