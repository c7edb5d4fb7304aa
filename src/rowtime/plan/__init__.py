"""From trees to operators: names, orders, validity; what EXPLAIN says about the result."""
