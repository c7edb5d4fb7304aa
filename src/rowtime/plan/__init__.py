"""From trees to operators: names, orders, validity, and EXPLAIN."""
