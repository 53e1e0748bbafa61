-- Figures of each auction by day.
select auction, date_time::date as day,
  count(*) as bids,
  count(*) filter (where price < 10000) as low_bids,
  count(*) filter (where price >= 10000 and price < 1000000) as middle_bids,
  count(*) filter (where price >= 1000000) as high_bids,
  min(price) as lowest, max(price) as highest, avg(price) as mean, sum(price) as total
from bid
group by auction, date_time::date
