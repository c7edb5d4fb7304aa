SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.`dateTime`, b.extra,
  a.itemName, a.description, a.initialBid, a.reserve, a.`dateTime` AS opened, a.expires, a.seller, a.category
FROM bid AS b JOIN auction AS a ON b.auction = a.id
WHERE a.category = 10
