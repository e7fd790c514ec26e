"""Report: dashboard, planned load."""

from app.console.report import dashboard, load

MODULES = (
    dashboard,
    load,
)
