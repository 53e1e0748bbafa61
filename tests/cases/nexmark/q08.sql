-- Who came, and opened an auction, within the same 10 seconds.
select p.id, p.name, p.tumble
from (
  select id, name, floor(extract(epoch from date_time) / 10)::bigint as tumble
  from person group by 1, 2, 3
) as p
join (
  select seller, floor(extract(epoch from date_time) / 10)::bigint as tumble
  from auction group by 1, 2
) as a on p.id = a.seller and p.tumble = a.tumble
