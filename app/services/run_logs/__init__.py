"""Logs of runs: their pieces as executors return them, and what is archived of them."""
