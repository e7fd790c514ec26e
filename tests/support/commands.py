"""Helpers of the tests of commands, for all that need them."""

from pathlib import Path

from click.testing import CliRunner, Result

from app.commands.main import duetime


def run(*arguments: object, text: str = "") -> Result:
    return CliRunner().invoke(
        duetime, [str(argument) for argument in arguments], input=text, prog_name="duetime"
    )


def env_file(folder: Path, **settings: object) -> Path:
    """Write settings, with the home in the same folder, and return the file."""
    path = folder / "xxl-job.env"
    lines = {"HOME": folder / "home", **settings}
    path.write_text("".join(f"XXL_JOB_{name}={value}\n" for name, value in lines.items()))
    return path
