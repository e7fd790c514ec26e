"""Statements on promises, their checks, their evidence, and incidents with their messages."""
