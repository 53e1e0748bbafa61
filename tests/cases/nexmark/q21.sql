-- The number of the channel: of those that are known by name, or of the address.
select auction, bidder, price, channel,
  case lower(channel)
    when 'apple' then '0'
    when 'google' then '1'
    when 'facebook' then '2'
    when 'baidu' then '3'
    else split_part(split_part(url, 'channel_id=', 2), '&', 1)
  end as channel_id
from bid
where url like '%channel_id=%' or lower(channel) in ('apple', 'google', 'facebook', 'baidu')
