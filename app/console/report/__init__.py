"""Report: dashboard, planned load."""

from app.console.report import dashboard, load
from app.console.report.completeness import export as completeness_export
from app.console.report.completeness import pages as completeness

MODULES = (
    dashboard,
    load,
    completeness,
    completeness_export,
)
