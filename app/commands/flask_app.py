"""Application of ``flask --app wsgi COMMAND``: the commands and Flask-Migrate's ``db``, no console.

Creating the console would write the secrets of a new installation.
"""

from typing import Any

from flask import Flask
from flask_migrate import Migrate

from app.commands.context import NotReady
from app.commands.main import COMMANDS, OPERATING
from app.database.engine import engine_options
from app.database.flask_db import db
from app.database.opening import create_database_file
from app.errors import NotConfigured
from app.services.installation.schema import MIGRATIONS
from app.settings.config import Config
from app.settings.home import prepare_home
from executor_client.cli.main import load_command


def create_command_app(config: Config) -> Flask:
    """Create the application; writes nothing and opens no connection."""
    app = Flask("app", static_folder=None)
    app.config["XXL_JOB"] = config
    app.config["SQLALCHEMY_DATABASE_URI"] = config.database_url
    app.config["SQLALCHEMY_ENGINE_OPTIONS"] = engine_options(config)
    db.init_app(app)
    for name in COMMANDS:
        app.cli.add_command(load_command(OPERATING[name]))
    migrate = Migrate(app, db, directory=str(MIGRATIONS))

    @migrate.configure
    def prepare(alembic_config: Any) -> Any:
        """Create home and SQLite file."""
        try:
            prepare_home(config.home)
            create_database_file(config)
        except NotConfigured as exc:
            raise NotReady(str(exc)) from exc
        return alembic_config

    return app
