"""Stores of the log archive: a folder, or a bucket of an S3-compatible server."""
