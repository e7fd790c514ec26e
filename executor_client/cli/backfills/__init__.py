"""Commands of backfills."""
