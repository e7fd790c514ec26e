"""Settings of an invocation of ``duetime``: from the file of the services and the environment."""

import functools
import os
from pathlib import Path

from app.settings.config import Config

#: settings of the services of a host, read by the commands too; and their home unless it is set there
ENV_FILE = Path("/etc/xxl-job.env")
SERVICE_HOME = Path("/var/lib/xxl-job")


class Settings:
    """Settings of an invocation of ``duetime``, read when a command first asks for them."""

    def __init__(self, env_file: Path | None) -> None:
        default = ENV_FILE if os.access(ENV_FILE, os.R_OK) else None
        self.env_file = env_file or default

    def read(self) -> Config:
        """Return the configuration as it is written, even if the database has moved."""
        # The file names the installation, as a .env in the current folder may belong to another one.
        dotenv = None if self.env_file else Path(".env")
        return Config.from_env(env_file=self.env_file, default_home=self.default_home, dotenv=dotenv)

    @property
    def default_home(self) -> Path:
        """The home unless the settings have one."""
        return SERVICE_HOME if self.env_file == ENV_FILE else Path("instance")

    @functools.cached_property
    def config(self) -> Config:
        """The configuration; raises NotConfigured."""
        from app.database.moves import follow  # imported here, because commands over the API need no database

        return follow(self.read())

    @property
    def place(self) -> str:
        """The files the settings were looked for in."""
        if self.env_file is not None:
            return f"environment and {self.env_file}"
        if not ENV_FILE.exists():
            return f"environment; there is no {ENV_FILE}"
        return f"environment; you may not read {ENV_FILE}, run this as the user of the services"
