-- Bids with their auctions, and with who sells and who bids.
select b.price, b.date_time, a.item_name, a.category, s.name as seller, s.city, p.name as bidder
from bid as b
join auction as a on b.auction = a.id
join person as s on a.seller = s.id
left join person as p on b.bidder = p.id
