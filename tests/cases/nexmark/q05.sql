-- The auctions with the most bids, over 10 seconds that slide by 2.
with counted as (
  select w.slide - o.back as slide, w.auction, count(*) as bids
  from (
    select auction, floor(extract(epoch from date_time) / 2)::bigint as slide from bid
  ) as w
  cross join (values (0), (1), (2), (3), (4)) as o(back)
  group by w.slide - o.back, w.auction
)
select c.slide, c.auction, c.bids
from counted as c
join (select slide, max(bids) as most from counted group by slide) as m
  on c.slide = m.slide and c.bids = m.most
