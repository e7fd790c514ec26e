"""Sources of changes: what is written is found again."""

from app.domain.code.change_sources import APPLY, IMPORT, RESTORE, TOKEN, UNDO, name_in, source_text
from tests.support.truth_table import truth_table

KINDS = (APPLY, UNDO, IMPORT, RESTORE, TOKEN)


@truth_table("kind", KINDS)
def test_the_name_in_a_source_is_found_by_its_kind(kind: str) -> None:
    source = source_text(kind, "infra@1a2b3c")
    names = {each: name_in(source, each) for each in KINDS}
    assert names == {each: "infra@1a2b3c" if each == kind else None for each in KINDS}


def test_a_source_may_have_no_name() -> None:
    assert source_text(IMPORT, "") == "import"
    assert name_in("import", IMPORT) is None
