"""Transcripts: worked examples of a pipeline, as files with which users and this project test."""
