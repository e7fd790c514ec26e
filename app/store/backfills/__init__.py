"""Statements on `xxl_job_backfill` and `xxl_job_backfill_instant`."""
