"""Version of the program and its client, defined only here."""

VERSION = "1.0.0"
