"""The content of each page of the console, as plain values: one module per view, and no HTML."""
