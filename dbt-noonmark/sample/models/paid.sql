select id, customer, amount from {{ ref('orders') }} where amount > 0
