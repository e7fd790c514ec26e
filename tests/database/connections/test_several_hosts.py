"""Several servers of PostgreSQL in one URL, of which the first is down."""

from dataclasses import replace

import pytest
from sqlalchemy import make_url, text

from app.database.dialects.choice import plain_engine
from app.database.opening import check_database
from app.services.doctor.examination import examine
from app.services.installation.upgrade import upgrade
from app.settings.config import Config
from app.settings.parsers import database_url as parse_url

pytestmark = pytest.mark.databases("postgresql")


@pytest.mark.parametrize(
    "hosts", ["host=127.0.0.1:1&host={host}:{port}", "host=127.0.0.1,{host}&port=1,{port}"]
)
def test_the_server_that_takes_writes_is_used(hosts: str, config: Config, database_url: str) -> None:
    url = make_url(database_url)
    places = hosts.format(host=url.host, port=url.port)
    several = parse_url(
        f"postgresql+psycopg://{url.username}@/{url.database}?{places}&target_session_attrs=read-write"
    )
    check_database(replace(config, database_url=several))
    upgrade(several)
    assert examine(replace(config, database_url=several)).is_complete
    with plain_engine(several).connect() as connection:
        assert connection.scalar(text("SELECT inet_server_port()")) == url.port
