"""Binding: from the trees of queries to operators. The only place beside operators that builds them."""
