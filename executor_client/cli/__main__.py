"""``python -m executor_client.cli COMMAND``: the program ``xxl`` of the client alone."""

import sys


def main() -> None:
    """Run the command of the command line."""
    try:
        import click  # noqa: F401
        import yaml  # noqa: F401
    except ModuleNotFoundError as exc:
        sys.exit(f"xxl: {exc.name} is missing; run: pip install 'xxl-job-executor[cli]'")
    from executor_client.cli.main import xxl

    xxl(prog_name="xxl")


if __name__ == "__main__":
    main()
