"""What users of Python hold: pipelines, queries, relations and events."""
