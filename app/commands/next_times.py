"""Command ``next-times``: the next times of cron expressions."""

import json
import sys
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import click

from app.clock import Millis, now_ms
from app.commands.context import configuration, one_line_errors
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import PREVIEW_COUNT, Schedule, check_schedule, next_times
from app.errors import XxlJobError

MAX_COUNT = 1_000


@click.command("next-times")
@click.option("--tz", default="", help="IANA time zone; default: the configured one.")
@click.option(
    "--start-ms", type=int, default=None, help="Start after this time, in epoch milliseconds; default: now."
)
@click.option("--count", type=click.IntRange(1, MAX_COUNT), default=PREVIEW_COUNT, show_default=True)
@click.argument("expression", required=False)
@one_line_errors
def next_times_command(tz: str, start_ms: int | None, count: int, expression: str | None) -> None:
    """Print the next times of a cron EXPRESSION.

    Without one, read JSON lines {"expr", "tz", "start_ms"} and print {"next_ms"} or {"error"} for each.
    """
    zone = tz or configuration().time_zone
    start = now_ms() if start_ms is None else start_ms
    if expression is None:
        _answer_lines(sys.stdin or (), zone=zone, start_ms=start, count=count)
        return
    times_ms = _next_ms(expression, zone, start, count)
    if not times_ms:
        click.echo("none: the schedule never fires", err=True)
    for time_ms in times_ms:
        local = datetime.fromtimestamp(time_ms // 1000, ZoneInfo(zone))
        click.echo(f"{time_ms} {local.isoformat()}")


def _answer_lines(lines: Iterable[str], *, zone: str, start_ms: Millis, count: int) -> None:
    for line in lines:
        if line.strip():
            answer = _answer(line, zone=zone, start_ms=start_ms, count=count)
            click.echo(json.dumps(answer, ensure_ascii=False))


def _answer(line: str, *, zone: str, start_ms: Millis, count: int) -> dict[str, Any]:
    """Return the result for one line; an invalid line is an error in the result."""
    try:
        request = json.loads(line)
        expression, requested_zone, requested_start_ms = (
            request["expr"],
            request.get("tz") or zone,
            request.get("start_ms", start_ms),
        )
        if (
            not isinstance(expression, str)
            or not isinstance(requested_zone, str)
            or not isinstance(requested_start_ms, int)
        ):
            raise TypeError
        return {"next_ms": _next_ms(expression, requested_zone, requested_start_ms, count)}
    except XxlJobError as exc:
        return {"error": str(exc)}
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError):
        return {"error": 'expected a JSON object {"expr": text, "tz": text, "start_ms": number}'}
    except (ValueError, OverflowError) as exc:
        return {"error": str(exc)}


def _next_ms(expression: str, zone: str, start_ms: Millis, count: int) -> list[Millis]:
    schedule = Schedule(type=ScheduleType.CRON, conf=expression.strip(), time_zone=zone)
    check_schedule(schedule)
    return next_times(schedule, start_ms, count)
