"""Where rows come from: one file a source; `contract.py` says what a source is."""
