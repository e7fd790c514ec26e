"""Pages of test alarms: the targets, and after a POST the result of each.

Need the right to edit the group; channels for all jobs are for administrators. A GET sends nothing.
"""

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.ui.lists.listing import here
from app.console.web.access import Access
from app.console.web.current import current_actor, executor_caller, settings, translate, translate_reason
from app.database.flask_db import read_scope
from app.errors import TooManyAttempts
from app.models.mute import Mute
from app.services.alarms import mutes, test_alarms
from app.services.alarms.test_alarms import AlarmTest

blueprint = Blueprint("alarm_tests", __name__)
POLICY = {
    "job": Access.EDIT,
    "group": Access.EDIT,
    "installation": Access.ADMIN,
    "channel": Access.ADMIN,
}


@blueprint.route("/jobinfo/<int(max=2147483647):job_id>/test-alarm", methods=["GET", "POST"])
def job(job_id: int) -> ResponseReturnValue:
    """Test the alarms of a job."""
    with read_scope() as session:
        test = test_alarms.job_to_test(session, job_id, actor=current_actor(), config=settings())
        job_mute = mutes.find_of(session, job_id=job_id, now_ms=now_ms())
        whole = mutes.find_of(session, group_id=test.group.id, now_ms=now_ms()) if test.group else None
    return _page(test, url_for("jobs.show", job_id=job_id), job_mute or whole)


@blueprint.route("/jobgroup/<int(max=2147483647):group_id>/test-alarm", methods=["GET", "POST"])
def group(group_id: int) -> ResponseReturnValue:
    """Test the alarms of an executor group."""
    with read_scope() as session:
        test = test_alarms.group_to_test(session, group_id, actor=current_actor(), config=settings())
        mute = mutes.find_of(session, group_id=group_id, now_ms=now_ms())
    return _page(test, url_for("group_page.show", group_id=group_id), mute)


@blueprint.route("/alarms/test", methods=["GET", "POST"])
def installation() -> ResponseReturnValue:
    """Test the channels for all jobs."""
    with read_scope() as session:
        test = test_alarms.installation_to_test(session, actor=current_actor(), config=settings())
    return _page(test, url_for("alarm_channels.index"), None)


@blueprint.route("/alarmchannels/<int(max=2147483647):channel_id>/test", methods=["GET", "POST"])
def channel(channel_id: int) -> ResponseReturnValue:
    """Test one alarm channel."""
    with read_scope() as session:
        test = test_alarms.channel_to_test(session, channel_id, actor=current_actor(), config=settings())
    return _page(test, url_for("alarm_channels.index"), None)


def _page(test: AlarmTest, back: str, mute: Mute | None) -> ResponseReturnValue:
    """Render the page; with a POST send the message first."""
    problems: dict[str, str] = {}
    refusal, status, headers = "", 200, {}
    if request.method == "POST":
        try:
            with executor_caller().permit():
                rows = test_alarms.send_test(test, actor=current_actor(), config=settings(), now_ms=now_ms())
            problems = {row.target: translate_reason(row.problem) for row in rows}
        except TooManyAttempts as exc:
            refusal, status, headers = translate(exc.args[0]), 429, {"Retry-After": str(exc.retry_after_s)}
    values = {"results": problems, "refusal": refusal, "mute": mute, "back": back, "action": here()}
    return render_template("alarms/test.html", test=test, **values), status, headers
