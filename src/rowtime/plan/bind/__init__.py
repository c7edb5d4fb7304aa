"""Binding: from the trees of queries to operators. Only the binder and the operators themselves build operators."""
