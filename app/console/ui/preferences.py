"""Display preferences of a reader, kept in cookies, and the frame around every page."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, available_timezones

from flask import Flask, Response, current_app, request

from app.clock import DAY_MS
from app.console.ui.filters import html_language, reader_zone
from app.console.ui.lists.columns import TABLES
from app.console.ui.lists.listing import here
from app.console.ui.menu_numbers import failing_jobs, open_incidents
from app.console.ui.notices import Notice, requested_notice, way_back
from app.console.web.current import LoggedIn, current_user, settings
from app.console.web.languages import language_of_request
from app.domain.access.permissions import Right
from executor_client.wire.version import VERSION

THEME_COOKIE = "xxl_job_theme"
SIDEBAR_COOKIE = "xxl_job_sidebar"
ROWS_COOKIE = "xxl_job_rows"
GROUP_COOKIE = "xxl_job_group"
COLUMNS_COOKIE = "xxl_job_columns_{table}"
WEEK_S = 7 * 86_400
YEAR_S = 365 * 86_400
#: code -> (native name, language tag)
LANGUAGES = {"zh_CN": ("简体中文", "zh-Hans"), "zh_TW": ("繁體中文", "zh-Hant"), "en": ("English", "en")}
THEMES = ("light", "dark")
#: the theme of the browser's system, as without a choice
SYSTEM_THEME = "system"
SIDEBARS = ("wide", "mini")
ROWS = ("comfortable", "dense")
#: what the list of jobs is grouped by
GROUPINGS = ("none", "executor")
#: separator of column names in the cookie
SEPARATOR = "."
#: prefixes of zones that are aliases or not places
UNOFFERED_AREAS = ("Etc/", "SystemV/", "posix/", "right/", "US/", "Brazil/", "Canada/", "Chile/", "Mexico/")


@dataclass(frozen=True, slots=True)
class Frame:
    """Frame of a page: what base.html shows around its content."""

    user: LoggedIn | None
    language: str
    html_lang: str
    #: empty: the system's
    theme: str
    #: ``mini`` or ``wide`` as the reader chose; empty: narrow windows have the narrow one
    sidebar: str
    dense: bool
    zone: str
    here: str
    notice: Notice | None
    cookie_path: str
    version: str = VERSION

    @property
    def may_view(self) -> bool:
        """Whether the user sees any executor group."""
        return self.user is not None and self.user.actor.has_anywhere(Right.VIEW)

    @property
    def languages(self) -> list[tuple[str, tuple[str, str]]]:
        """The supported languages: code, and native name with language tag."""
        return list(LANGUAGES.items())


@cache
def zone_names() -> tuple[str, ...]:
    """Return the selectable time zones by name, UTC first."""
    zones = (name for name in available_timezones() if "/" in name and not name.startswith(UNOFFERED_AREAS))
    return ("UTC", *sorted(zones))


@lru_cache(maxsize=2)
def zone_offsets(day: int) -> tuple[tuple[str, str], ...]:
    """Return the selectable time zones with their offset, as ``+08:00``, at a day since 1970."""
    noon = datetime.fromtimestamp(day * DAY_MS // 1000 + DAY_MS // 2000, UTC)
    return tuple((name, noon.astimezone(ZoneInfo(name)).isoformat()[19:]) for name in zone_names())


def area() -> str:
    """Return the console area of the requested page, such as ``jobs``; empty outside."""
    blueprint = current_app.blueprints.get(request.blueprint or "")
    path = blueprint.import_name.split(".") if blueprint is not None else []
    name = path[2] if path[:2] == ["app", "console"] else ""
    # rounds have no item in the menu: they stand with the runs that they lead to
    return "runs" if name == "rounds" else name


def is_grouped() -> bool:
    """Whether this reader groups the list of jobs by executor."""
    return request.cookies.get(GROUP_COOKIE) == "executor"


def frame() -> Frame:
    """Return the frame of this request's page."""
    theme, sidebar = request.cookies.get(THEME_COOKIE, ""), request.cookies.get(SIDEBAR_COOKIE, "")
    return Frame(
        user=current_user(),
        language=language_of_request(),
        html_lang=html_language(),
        theme=theme if theme in THEMES else "",
        sidebar=sidebar if sidebar in SIDEBARS else "",
        dense=request.cookies.get(ROWS_COOKIE) == "dense",
        zone=str(reader_zone()),
        here=here() if request.method == "GET" else request.script_root + request.path,
        notice=requested_notice(),
        cookie_path=cookie_path(),
    )


@dataclass(frozen=True, slots=True)
class HideableColumn:
    """Column that can be hidden, and whether this reader sees it."""

    name: str
    title: str
    is_shown: bool


def shown_columns(table: str) -> frozenset[str]:
    """Return the names of the columns of a list that this reader sees."""
    cookie = request.cookies.get(COLUMNS_COOKIE.format(table=table))
    names = None if cookie is None else cookie.split(SEPARATOR)
    return frozenset(
        column.name
        for column in TABLES[table].cells
        if not column.can_hide or (column.is_default if names is None else column.name in names)
    )


def hideable_columns(table: str) -> list[HideableColumn]:
    """Return the columns of a list that can be hidden."""
    names = shown_columns(table)
    return [
        HideableColumn(column.name, str(column.title), column.name in names)
        for column in TABLES[table].cells
        if column.can_hide
    ]


def keep_columns(response: Response, table: str, visible: Collection[str]) -> None:
    """Keep the visible columns of a list in a cookie; does nothing for an unknown list."""
    if table in TABLES:
        names = [column.name for column in TABLES[table].cells if column.can_hide and column.name in visible]
        keep(response, COLUMNS_COOKIE.format(table=table), SEPARATOR.join(names), max_age_s=YEAR_S)


def cookie_path() -> str:
    """Return the path of the console's cookies."""
    return settings().context_path or "/"


def keep(response: Response, name: str, value: str, *, max_age_s: int) -> None:
    """Keep a choice in a cookie."""
    response.set_cookie(
        name, value, max_age=max_age_s, path=cookie_path(), samesite="Lax", secure=request.is_secure
    )


def init_app(app: Flask) -> None:
    """Pass the frame to every page; list columns and the way back to the templates."""
    app.context_processor(lambda: {"frame": frame()})
    app.add_template_global(area, "frame_area")
    for function in (failing_jobs, open_incidents, hideable_columns, is_grouped, shown_columns, way_back):
        app.add_template_global(function)
    app.add_template_global(lambda table: TABLES[table].titles, "column_titles")
