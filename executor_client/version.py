"""The version of the program and of its client: the one place it is written."""

VERSION = "0.1.0"
