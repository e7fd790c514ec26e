"""Rounds on pages: what a job runs after, and what has arrived, in words."""
