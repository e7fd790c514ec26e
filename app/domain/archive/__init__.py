"""Log archive: what is kept of the logs of runs, and when it is fetched from their executors."""
