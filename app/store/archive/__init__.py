"""Statements on `xxl_job_log_archive`."""
