-- The same by channel, with the last minute of each.
select channel, date_time::date as day, max(date_trunc('minute', date_time)) as last_minute,
  count(*) as bids,
  count(*) filter (where price < 10000) as low_bids,
  count(*) filter (where price >= 10000 and price < 1000000) as middle_bids,
  count(*) filter (where price >= 1000000) as high_bids,
  count(distinct bidder) as bidders,
  count(distinct bidder) filter (where price < 10000) as low_bidders,
  count(distinct bidder) filter (where price >= 1000000) as high_bidders,
  count(distinct auction) as auctions,
  count(distinct auction) filter (where price >= 1000000) as high_auctions
from bid
group by channel, date_time::date
