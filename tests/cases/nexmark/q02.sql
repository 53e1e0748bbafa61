-- Bids on some auctions.
select auction, price
from bid
where auction % 7 = 0
