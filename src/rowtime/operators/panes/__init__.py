"""Event times that are declared, and the panes that fire by them."""
