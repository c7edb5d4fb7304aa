-- Local item suggestion: who sells in category 10 from three states. Given a key bound.
--
-- The original joins every auction with every person forever. A seller registers once and before the auction, so the
-- join as of the auction's time finds the same rows: it keeps one row a person, and no auction.
SELECT STREAM p.name, p.city, p.state, a.id
FROM auction AS a JOIN person FOR SYSTEM_TIME AS OF a.ROWTIME AS p ON p.id = a.seller
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA');
