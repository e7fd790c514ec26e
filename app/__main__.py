"""``python -m app COMMAND``: the program ``xxl``."""

from app.commands.main import xxl
from app.home import keep_new_files_private
from app.log_setup import set_up_logging


def main() -> None:
    """Run the command of the command line; warnings go to standard error."""
    keep_new_files_private()
    set_up_logging("WARNING")
    xxl(prog_name="xxl")


if __name__ == "__main__":
    main()
