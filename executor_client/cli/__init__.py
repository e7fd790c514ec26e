"""The program ``xxl``: commands over API v1."""
