select customer, total from {{ ref('customers') }} except select customer, total from {{ ref('kept') }}
