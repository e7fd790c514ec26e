"""Lock of a promotion."""

from pathlib import Path

import pytest

from app.errors import NotConfigured
from app.services.promotion.leftovers import LOCK_FILE, only_one


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("kept")
    (tmp_path / LOCK_FILE).symlink_to(target)
    with pytest.raises(NotConfigured, match=r"promote\.lock: cannot be opened"), only_one(tmp_path):
        pass
    assert target.read_text() == "kept"
