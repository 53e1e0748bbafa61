-- Bids with their auctions, of one category.
select b.auction, b.bidder, b.price, b.channel, b.date_time as bid_time,
  a.item_name, a.initial_bid, a.reserve, a.date_time as auction_time, a.expires, a.seller
from bid as b
join auction as a on b.auction = a.id
where a.category = 10
