-- The highest bids of every 10 seconds.
with windowed as (
  select *, floor(extract(epoch from date_time) / 10)::bigint as tumble from bid
)
select w.auction, w.price, w.bidder, w.date_time, w.extra
from windowed as w
join (select tumble, max(price) as highest from windowed group by tumble) as m
  on w.tumble = m.tumble and w.price = m.highest
