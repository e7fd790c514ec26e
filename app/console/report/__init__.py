"""Report: dashboard, timeline, planned load."""

from app.console.report import dashboard, load

MODULES = (
    dashboard,
    load,
)
