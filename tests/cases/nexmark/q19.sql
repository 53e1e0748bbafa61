-- The ten highest bids of every auction.
select auction, bidder, price, channel, date_time, place
from (
  select *,
    row_number() over (
      partition by auction order by price desc, date_time, bidder, channel, url, extra
    ) as place
  from bid
) as ranked
where place <= 10
