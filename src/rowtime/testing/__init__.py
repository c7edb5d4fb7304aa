"""Transcripts: worked examples of a pipeline, as files that users and this project test by."""
