-- The winning bid of every auction.
select id, item_name, seller, category, bidder, price, bid_time
from (
  select a.id, a.item_name, a.seller, a.category, b.bidder, b.price, b.date_time as bid_time,
    row_number() over (
      partition by a.id order by b.price desc, b.date_time, b.bidder, b.channel, b.extra
    ) as place
  from auction as a
  join bid as b on a.id = b.auction
  where b.date_time between a.date_time and a.expires
) as ranked
where place <= 1
