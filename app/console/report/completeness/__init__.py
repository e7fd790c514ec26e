"""Completeness page: whether everything ran that was due, by days, terms and jobs."""
