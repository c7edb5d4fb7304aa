"""What each page of the console shows, as plain values: one view, one module, and no HTML."""
