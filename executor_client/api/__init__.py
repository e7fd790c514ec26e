"""Client of API v1 of a console, over HTTP or on the server itself."""
