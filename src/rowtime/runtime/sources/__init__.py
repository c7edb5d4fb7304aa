"""Sources, one file per kind; `contract.py` defines what a source is."""
