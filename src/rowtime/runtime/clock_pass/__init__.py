"""The clock pass: which rows of a tick a gate refuses, over the items of all its writers."""
