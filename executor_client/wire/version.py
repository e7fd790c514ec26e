"""Version of the program and its client, defined only here."""

VERSION = "0.1.0"
