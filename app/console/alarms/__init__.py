"""Alarms: channels, mutes and test alarms."""

from app.console.alarms import channels, mutes, test_alarms

MODULES = (
    channels,
    mutes,
    test_alarms,
)
