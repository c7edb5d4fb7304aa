"""A profile of a source: how far out of order its rows are, and which tolerance that needs.

A task of Spark reads some of the rows in order (`stretches`) and compares each with marks of its own (`clocks`); the
driver corrects the first rows of each task by the marks of earlier ones (`chained`).
"""
