"""Backfills as several areas show them."""
