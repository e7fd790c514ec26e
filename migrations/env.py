"""Alembic's entry: which database, which tables. `flask --app wsgi db upgrade`, or a URL handed in by the tests."""

from alembic import context
from sqlalchemy import create_engine, pool

from app.config import Config
from app.models.base import Base


def run() -> None:
    """Run the migrations, each in its own transaction where the database can."""
    url = context.config.attributes.get("url") or Config.from_env().database_url
    engine = create_engine(url, poolclass=pool.NullPool)
    with engine.connect() as connection:
        context.configure(
            connection=connection,
            target_metadata=Base.metadata,
            transaction_per_migration=True,
            render_as_batch=engine.dialect.name == "sqlite",
        )
        with context.begin_transaction():
            context.run_migrations()


run()
