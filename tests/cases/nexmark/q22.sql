-- The folders of the address.
select auction, bidder, price, channel,
  split_part(url, '/', 4) as first_folder,
  split_part(url, '/', 5) as second_folder,
  split_part(url, '/', 6) as third_folder
from bid
