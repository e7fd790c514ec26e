"""``python -m app COMMAND``: the program ``xxl``."""

from app.commands.main import xxl

xxl(prog_name="xxl")
