"""Log archive: fetches the logs of runs, stores them, and reads and searches what is stored."""
