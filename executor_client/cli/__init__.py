"""The program ``duetime``: commands over API v1."""
