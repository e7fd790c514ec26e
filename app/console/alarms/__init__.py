"""Alarms: mutes and test alarms."""

from app.console.alarms import mutes, test_alarms

MODULES = (
    mutes,
    test_alarms,
)
