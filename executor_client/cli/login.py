"""Commands ``login``, ``logout`` and ``whoami``: profiles of consoles."""

import os

import click

from executor_client.api.client import ApiClient
from executor_client.api.credentials import console_url, is_loopback
from executor_client.api.errors import NotConfigured
from executor_client.api.profiles import (
    DEFAULT_NAME,
    Profile,
    profiles_path,
    read_profiles,
    write_profiles,
)
from executor_client.cli.invocation import Invocation, api_command
from executor_client.cli.output.output import note, show_item
from executor_client.cli.output.prompts import ask
from executor_client.config.terminal import read_line


@click.command("login", short_help="Keep address and token of a console as a profile.")
@click.argument("url", required=False)
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input, not from a prompt.")
@api_command
def login(invocation: Invocation, url: str | None, token_stdin: bool) -> None:
    """Keep the console at URL, such as https://jobs.example.com/xxl-job-admin, and a token as a profile.

    It becomes the profile of the commands that name none. Make the token in the console: your name, Account
    and settings, API tokens. --profile names the profile, by default "default".
    """
    path = profiles_path(os.environ)
    profiles = read_profiles(path)
    address = console_url(url or ask("Address of the console", instead="name the URL", err=True))
    if address.startswith("http:") and not is_loopback(address):
        note("warning: http sends the token unencrypted; use https if the console has it", fg="yellow")
    token = (
        read_line() if token_stdin else ask("Token", instead="add --token-stdin", hide_input=True, err=True)
    ).strip()
    if not token.isascii() or not token.isprintable() or not token:
        raise NotConfigured("expected a token, which begins with xxl_")
    client = ApiClient(address, token)
    try:
        me = client.me()
    finally:
        client.close()
    name = invocation.profile or DEFAULT_NAME
    profiles.profiles[name] = Profile(address, token)
    profiles.default = name
    write_profiles(path, profiles)
    if invocation.is_for_people:
        click.echo(f"{address}: token {me['name']} accepted; kept as profile {name} in {path}")
    else:
        show_item(invocation, {"profile": name, "url": address, **me})


@click.command("logout", short_help="Remove a profile.")
@api_command
def logout(invocation: Invocation) -> None:
    """Remove the profile that --profile names, or that of the last login. The token stays valid."""
    path = profiles_path(os.environ)
    profiles = read_profiles(path)
    name = invocation.profile or profiles.default
    if name not in profiles.profiles:
        raise NotConfigured(f"there is no profile {name or DEFAULT_NAME} in {path}")
    del profiles.profiles[name]
    if profiles.default == name:
        profiles.default = ""
    write_profiles(path, profiles)
    note(f"profile {name} removed; revoke its token in the console if it is not used any more")


@click.command("whoami", short_help="Show the console and the token in use.")
@api_command
def whoami(invocation: Invocation) -> None:
    """Show which console is called, with which token, and what it may do."""
    show_item(invocation, {"url": invocation.client.address, **invocation.client.me()})
