"""GLUE versions: compared and restored."""

from collections.abc import Callable

from app.clock import now_ms
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Right
from app.models.audit import AuditEntry
from app.models.glue import GlueVersion
from app.models.job import Job
from app.services.jobs import glue
from tests.console.pages import is_at_login, markup_of, submit, text_of, unnamed_path_after
from tests.support.console import ACTOR, Console, add_group, add_job


def add_glue_job(group_id: int, *sources: str) -> tuple[int, list[int]]:
    job_id = add_job(group_id, glue_type="GLUE_SHELL", executor_handler="", glue_source="echo zero")
    ids = []
    for number, source in enumerate(sources):
        with session_scope() as session:
            ids.append(
                glue.save_source(session, job_id, source, f"version {number}", actor=ACTOR, now_ms=now_ms())
            )
    return job_id, ids


def test_without_a_login_nothing_is_shown(console: Console) -> None:
    assert is_at_login(console.get("/jobcode/diff?jobId=1"))
    assert is_at_login(console.get("/jobcode/restore?jobId=1&version=1"))


def test_the_editor_says_that_changed_code_ends_the_run_in_progress(admin: Console) -> None:
    job_id, _ = add_glue_job(add_group())
    text = "The first run of changed code ends the run in progress on its executor"
    assert text in text_of(admin.get(f"/jobcode?jobId={job_id}"))


def test_the_parameter_has_a_row_for_each_of_its_lines_up_to_six(admin: Console) -> None:
    group_id = add_group()
    for text, rows in (("", 1), ("day=1", 1), ("a\nb", 2), ("a\n" * 9, 6)):
        job_id = add_job(group_id, glue_type="GLUE_SHELL", executor_handler="", executor_param=text)
        page = admin.get(f"/jobcode?jobId={job_id}")
        assert f'name="executor_param" rows="{rows}"' in markup_of(page)


def test_two_versions_are_compared_as_text(admin: Console) -> None:
    job_id, (first, second) = add_glue_job(add_group(), "same\necho <b>one</b>\n", "same\necho two\n")
    page = admin.get(f"/jobcode/diff?jobId={job_id}&old={first}&new={second}")
    assert "echo <mark>&lt;b&gt;one&lt;/b&gt;</mark>" in page.text
    assert "<b>one" not in page.text
    assert page.text.count('class="removed"') == page.text.count('class="added"') == 1
    assert (
        admin.get(f"/jobcode/diff?jobId={job_id}&old={first}").text.count('class="added"') == 1
    )  # 0 is the current version
    same = admin.get(f"/jobcode/diff?jobId={job_id}&old={second}")
    assert "The versions are identical." in text_of(same)


def test_the_comparison_counts_its_lines_and_shows_the_whole_code_on_demand(admin: Console) -> None:
    same = "".join(f"echo {number}\n" for number in range(40))
    job_id, (first, second) = add_glue_job(add_group(), f"{same}tries = 3\n", f"{same}tries = 12\nexit\n")
    path = f"/jobcode/diff?jobId={job_id}&old={first}&new={second}"
    page = admin.get(path)
    assert "−1 +2 1 lines removed, 2 added" in text_of(page)
    assert "37 equal lines" in text_of(page)
    assert "tries = <mark>12</mark>" in page.text
    assert "echo 20" not in page.text
    whole = admin.get(f"{path}&whole=1")
    assert "echo 20" in whole.text
    assert "equal lines" not in text_of(whole)
    assert "Show the changes only" in text_of(whole)


def test_versions_that_differ_in_their_last_line_end_are_not_identical(admin: Console) -> None:
    job_id, (first, _second) = add_glue_job(add_group(), "echo one\n", "echo one")
    page = text_of(admin.get(f"/jobcode/diff?jobId={job_id}&old={first}"))
    assert "The versions differ only in their line ends." in page
    assert "identical" not in page


def test_the_comparison_opens_with_the_last_version_that_differs(admin: Console) -> None:
    job_id, _versions = add_glue_job(add_group(), "echo one", "echo two")
    page = admin.get(f"/jobcode/diff?jobId={job_id}")
    assert page.text.count('class="removed"') == page.text.count('class="added"') == 1
    heads = markup_of(page).partition("<thead>")[2].partition("</thead>")[0]
    assert "version 0 · test</th>" in heads
    assert '<th scope="col">Current version</th>' in heads
    only, _versions = add_glue_job(add_group("another-app", "Another"))
    assert "There is only one version of this code" in text_of(admin.get(f"/jobcode/diff?jobId={only}"))


def test_a_version_of_another_job_is_not_found(admin: Console) -> None:
    group_id = add_group()
    job_id, _own = add_glue_job(group_id, "echo one")
    _other, (foreign,) = add_glue_job(group_id, "echo other")
    assert admin.get(f"/jobcode/diff?jobId={job_id}&old={foreign}").status_code == 404
    assert (
        submit(admin, f"/jobcode/restore?jobId={job_id}&version={foreign}", glue_remark="stolen").status_code
        == 404
    )
    assert admin.get("/jobcode/diff?jobId=2147483647").status_code == 404


def test_code_needs_the_glue_right(admin: Console, normal_user: Callable[..., Console]) -> None:
    group_id, foreign = add_group(), add_group("other-app", "Other")
    job_id, (version,) = add_glue_job(group_id, "echo one")
    their_id, (other_version,) = add_glue_job(foreign, "echo one")
    norman = normal_user(
        group_id, foreign, rights={group_id: frozenset(Right), foreign: frozenset({Right.EDIT})}
    )
    assert norman.get(f"/jobcode/diff?jobId={job_id}").status_code == 200
    assert norman.get(f"/jobcode/diff?jobId={their_id}").status_code == 403
    assert (
        submit(
            norman, f"/jobcode/restore?jobId={their_id}&version={other_version}", glue_remark="mine now"
        ).status_code
        == 403
    )
    outsider = normal_user(foreign, username="olga", rights={foreign: frozenset(Right)})
    assert outsider.get(f"/jobcode/restore?jobId={job_id}&version={version}").status_code == 404


def test_a_restored_version_is_a_new_one(admin: Console) -> None:
    job_id, (first, _second) = add_glue_job(add_group(), "echo one", "echo two")
    path = f"/jobcode/restore?jobId={job_id}&version={first}"
    assert 'value="Restored: version 0"' in admin.get(path).text
    assert submit(admin, path, glue_remark="no").status_code == 400
    assert (
        unnamed_path_after(submit(admin, path, glue_remark="back again"))
        == f"/jobcode?jobId={job_id}&done=restored"
    )
    with read_scope() as session:
        job = session.get(Job, job_id)
        assert job is not None
        assert job.glue_source == "echo one"
        newest = session.query(GlueVersion).order_by(GlueVersion.id.desc()).first()
        assert newest is not None
        assert (newest.glue_remark, newest.author) == ("back again", "admin")
        assert session.query(AuditEntry).filter_by(action="glue.save", username="admin").count() == 1


def test_thirty_versions_are_kept(admin: Console) -> None:
    _job, ids = add_glue_job(add_group(), *[f"echo {number}" for number in range(32)])
    with read_scope() as session:
        assert sorted(version.id for version in session.query(GlueVersion)) == ids[2:]


def test_a_restore_without_a_token_is_refused(admin: Console) -> None:
    job_id, (version,) = add_glue_job(add_group(), "echo one")
    assert (
        admin.post(
            f"/jobcode/restore?jobId={job_id}&version={version}", {"glue_remark": "no token"}
        ).status_code
        == 403
    )
