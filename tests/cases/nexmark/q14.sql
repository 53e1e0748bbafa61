-- Large bids, the part of the day, and how many letters c there are.
select auction, bidder, 0.908 * price as price,
  case
    when extract(hour from date_time) between 8 and 18 then 'day'
    when extract(hour from date_time) <= 6 or extract(hour from date_time) >= 20 then 'night'
    else 'between'
  end as part,
  date_time, extra,
  length(extra) - length(replace(extra, 'c', '')) as letters
from bid
where 0.908 * price > 1000000 and 0.908 * price < 50000000
