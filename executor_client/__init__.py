"""Run XXL-JOB handlers in Python."""
