-- The last bid of every bidder on every auction.
select auction, bidder, price, channel, url, date_time, extra
from (
  select *,
    row_number() over (
      partition by bidder, auction order by date_time desc, price, channel, url, extra
    ) as place
  from bid
) as ranked
where place <= 1
