-- Sessions of bidders: bids less than 10 seconds apart.
with gaps as (
  select bidder, date_time,
    case
      when date_time - lag(date_time) over (partition by bidder order by date_time)
        < interval '10 seconds' then 0
      else 1
    end as begins
  from bid
), numbered as (
  select bidder, date_time,
    sum(begins) over (partition by bidder order by date_time) as session
  from gaps
)
select bidder, count(*) as bids, min(date_time) as first_bid, max(date_time) as last_bid
from numbered
group by bidder, session
