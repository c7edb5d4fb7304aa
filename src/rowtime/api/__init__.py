"""The Python API that users work with: pipelines, queries, relations and events."""
