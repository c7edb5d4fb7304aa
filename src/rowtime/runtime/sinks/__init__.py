"""Where rows go: one file a sink; `contract.py` says what a sink is."""
