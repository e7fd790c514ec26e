"""Alembic environment: upgrade the configured database, or the one at a URL passed by the caller."""

from alembic import context
from sqlalchemy import Engine, column, create_engine, inspect, pool, table, update

from app.config import Config
from app.models.base import Base


def run() -> None:
    """Run the migrations, each in its own transaction where DDL is transactional."""
    url = context.config.attributes.get("url") or Config.from_env().database_url
    engine = create_engine(url, poolclass=pool.NullPool)
    renumber(engine)
    with engine.connect() as connection:
        context.configure(
            connection=connection,
            target_metadata=Base.metadata,
            transaction_per_migration=True,
            render_as_batch=engine.dialect.name == "sqlite",
        )
        with context.begin_transaction():
            context.run_migrations()


def renumber(engine: Engine) -> None:
    """Stamp a database whose revision has been replaced (REPLACES in a version file).

    The last replaced revision has the schema of its replacement. Earlier ones are stamped with the
    replacement's predecessor, so that the replacement runs and adds what is missing.
    """
    version = table("alembic_version", column("version_num"))
    with engine.begin() as connection:
        if not inspect(connection).has_table(version.name):
            return
        for script in context.script.walk_revisions():
            replaced = getattr(script.module, "REPLACES", ())
            for old in replaced:
                new = script.revision if old == replaced[-1] else script.down_revision
                connection.execute(
                    update(version).where(version.c.version_num == old).values(version_num=new)
                )


run()
