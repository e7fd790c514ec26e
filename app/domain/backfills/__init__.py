"""Backfills: runs of a job for past instants, made up for on request."""
