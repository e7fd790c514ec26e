"""Completeness: which instants of a schedule were expected, and what became of each of them."""
