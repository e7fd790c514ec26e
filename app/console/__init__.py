"""The console: its areas, each a blueprint in a module of its own, behind one gate."""

from flask import Flask

from app.console import (
    account,
    alarm_mutes,
    alarm_tests,
    auth,
    dashboard,
    errors,
    favourites,
    filters,
    glue,
    glue_versions,
    group_checks,
    group_page,
    groups,
    guards,
    headers,
    help,
    job_actions,
    job_bulk,
    job_transfer,
    jobs,
    load,
    log_cleaning,
    log_export,
    logins,
    logs,
    page_parts,
    pickers,
    preferences,
    run_story,
    saved_views,
    scripting_groups,
    scripting_jobs,
    scripting_login,
    scripting_logs,
    scripting_users,
    start_page,
    users,
    words,
)

AREAS = (
    auth,
    scripting_login,
    scripting_jobs,
    scripting_logs,
    scripting_groups,
    scripting_users,
    account,
    start_page,
    saved_views,
    dashboard,
    load,
    jobs,
    favourites,
    job_actions,
    job_bulk,
    job_transfer,
    glue,
    glue_versions,
    log_cleaning,
    log_export,
    logs,
    groups,
    group_checks,
    group_page,
    alarm_mutes,
    alarm_tests,
    users,
    pickers,
    help,
)


def register(app: Flask) -> None:
    """Add gate, error pages, headers and all areas to an application."""
    guards.init_app(app)
    errors.init_app(app)
    headers.init_app(app)
    for area in AREAS:
        app.register_blueprint(area.blueprint)
    filters.init_app(app)
    logins.init_app(app)
    words.init_app(app)
    run_story.init_app(app)
    page_parts.init_app(app)
    preferences.init_app(app)
