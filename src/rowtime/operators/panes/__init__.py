"""Declared event times, and the panes that fire by them."""
