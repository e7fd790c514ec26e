"""Command ``completion``: shell completion scripts."""

import click
from click.shell_completion import BashComplete, get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command("completion", short_help="Print the completion script for a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands, options, ids and handlers of jobs in a SHELL.

    \b
    bash: echo 'eval "$(duetime completion bash)"' >> ~/.bashrc
    zsh:  echo 'eval "$(duetime completion zsh)"' >> ~/.zshrc
    fish: duetime completion fish > ~/.config/fish/completions/duetime.fish
    """
    kind = _Bash if shell == "bash" else get_completion_class(shell)
    assert kind is not None
    root = context.find_root()
    name = root.info_name or "duetime"
    click.echo(kind(root.command, {}, name, f"_{name.upper().replace('-', '_')}_COMPLETE").source())


class _Bash(BashComplete):
    """Completion for bash, without the check of the installed version: the script may be for another host."""

    @staticmethod
    def _check_version() -> None:
        """Skip the check, which would start bash."""
