"""Lock and mark of a promotion, without a server."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.database.moves import PROMOTION_TABLE, follow
from app.database.promotion_mark import MOVED
from app.errors import NotConfigured
from app.services.installation.promotion_leftovers import LOCK_FILE, only_one
from app.services.promotion.promoting import has_moved
from app.settings.config import Config
from app.settings.sealing import Sealer

SERVER = "mysql+pymysql://ann:secret@127.0.0.1:1/x"


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("kept")
    (tmp_path / LOCK_FILE).symlink_to(target)
    with pytest.raises(NotConfigured, match=r"promote\.lock: cannot be opened"), only_one(tmp_path):
        pass
    assert target.read_text() == "kept"


def test_a_moved_database_needs_the_key_of_the_services(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "xxl_job.db")) as connection:
        connection.execute(f"CREATE TABLE {PROMOTION_TABLE} (promotion_id, sealed_url, revision)")
        sealed = Sealer(lambda: "k" * 32).seal(SERVER)
        connection.execute(f"INSERT INTO {PROMOTION_TABLE} VALUES ('1', ?, '')", (sealed,))
        connection.execute(f"PRAGMA user_version = {MOVED}")
        connection.commit()
    url = f"sqlite:///{tmp_path}/xxl_job.db"
    other = Config(home=tmp_path, database_url=url, secret_key="another" * 8)
    with pytest.raises(NotConfigured, match="another application key; set the URL"):
        has_moved(other, SERVER)
    with pytest.raises(NotConfigured, match="secret_key: the application key cannot be read"):
        follow(Config(home=tmp_path / "home", database_url=url))
    assert [path.name for path in tmp_path.iterdir()] == ["xxl_job.db"]
