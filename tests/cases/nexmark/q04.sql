-- The mean of the closing prices of each category.
select category, avg(final) as mean
from (
  select a.id, a.category, max(b.price) as final
  from auction as a
  join bid as b on a.id = b.auction
  where b.date_time between a.date_time and a.expires
  group by a.id, a.category
) as closed
group by category
