"""What the pages of one run show: the run, the runs around it, its history, its tabs and its remedy."""

from typing import Any, NamedTuple

from flask import request, url_for

from app.clock import now_ms
from app.console.runs.archive import archive_fact
from app.console.runs.chain import chain_of
from app.console.runs.dispatch_steps import steps_of
from app.console.runs.neighbours import around
from app.console.ui.filters import outcome
from app.console.ui.notices import way_back
from app.console.ui.remedy_links import remedy_links
from app.console.ui.rounds.of_run import find_rounds
from app.console.web.current import current_actor
from app.console.web.language import _, lazy_pgettext, ngettext
from app.database.flask_db import read_scope
from app.domain.access.permissions import Right
from app.domain.enums import TriggerCode
from app.domain.runs.remedies import Remedy, find_remedy
from app.domain.runs.result_tables import table_of
from app.domain.runs.trace_templates import FORCED
from app.models.log import JobLog
from app.services.alarms.muted_alarms import find_mutes
from app.services.backfills.of_runs import find_backfills_of
from app.services.runs import logs, rows
from app.services.runs.log_lines import has_log
from app.services.runs.run_history import history_of
from app.services.runs.sent_parameters import find_parameter
from app.store.limits import waiting_list
from app.store.runs import neighbours

#: lines of a log in a page without scripts
PLAIN_LINES = 200


class Tab(NamedTuple):
    """Part of a run: its title, a hint such as a number of rows, and its address."""

    title: str
    hint: str
    href: str


def run_context(log_id: int) -> dict[str, Any]:
    """Return the values of the templates of a run."""
    actor = current_actor()
    with read_scope() as session:
        log = logs.get_log(session, log_id, actor=actor)
        row = rows.log_rows(session, [log], actor=actor)[0]
        chain = chain_of(session, log, actor=actor)
        beside = around(session, row, actor=actor)
        failed = outcome(log) not in ("success", "running", "sending")
        history = history_of(session, log, row.reason if failed else "", actor=actor)
        shards = [
            shard for shard in neighbours.find_shards(session, log) if actor.may(shard.job_group, Right.VIEW)
        ]
        fact = archive_fact(session, log_id)
        parameter = find_parameter(session, log, actor=actor)
        rounds = find_rounds(session, log, actor=actor)
        backfill_id = find_backfills_of(session, [log]).get(log.id)
        mutes = find_mutes(session, [row.job], now_ms=now_ms()) if failed and row.job is not None else {}
        holds_slot = log.trigger_code == TriggerCode.UNRESOLVED and bool(
            waiting_list.find_held(session, [log.id])
        )
    remedy = find_remedy(row.reason) if log.trigger_code not in (0, 200) else None
    steps = steps_of(log.trigger_msg)
    return {
        "archived": fact,
        "around": beside,
        "log": log,
        "parameter": parameter,
        "job": row.job,
        "group": row.group,
        "may_operate": row.may_operate,
        "chain": chain,
        "history": history,
        "rounds": rounds,
        "backfill_id": backfill_id,
        "shards": shards if len(shards) > 1 else [],
        "muted": bool(mutes),
        "holds_slot": holds_slot,
        "is_forced": FORCED.msgid in (log.trigger_msg or ""),
        "remedies": remedy_links(remedy, row.group, row.job) if remedy is not None else [],
        "network_hint": remedy is Remedy.NETWORK,
        "has_log": has_log(log),
        "steps": steps,
        "tabs": _tabs(log, len(steps), beside.success_id),
        "back": way_back("logs.index") if "next" in request.args else "",
    }


def _tabs(log: JobLog, steps: int, success_id: int | None) -> dict[str, Tab]:
    """Return the tabs of a run by name; the first one is shown without a name.

    ``steps`` is the number of those of its dispatch, to which its result is added.
    """
    page = url_for("logs.show", log_id=log.id)
    count = steps + bool(log.handle_code)
    hint = ngettext("%(num)d step", "%(num)d steps", count) if count else ""
    dispatch = Tab(_("Dispatch"), hint, f"{page}?tab=dispatch")
    tabs = {"output": Tab(_("Output"), "", page)} if has_log(log) else {"dispatch": dispatch}
    if log.handle_msg:
        table = table_of(log.handle_msg)
        count = len(table.rows) + table.more_rows if table is not None and table.headings else 0
        hint = ngettext("%(num)d row", "%(num)d rows", count) if count else ""
        tabs["result"] = Tab(str(lazy_pgettext("run", "Result")), hint, f"{page}?tab=result")
    tabs.setdefault("dispatch", dispatch)
    return compared_tabs(tabs, success_id, log.id) if success_id else tabs


def compared_tabs(tabs: dict[str, Tab], old_id: int, log_id: int) -> dict[str, Tab]:
    """Return the tabs with the run that a run is compared with."""
    compare = url_for("run_compare.compare", log_id=log_id, old=old_id)
    return tabs | {"compare": Tab(_("Compare"), f"#{old_id}", compare)}
