"""Backfills: their list, their start, and their steps."""
