"""Alarms: channels, mutes and test alarms."""

from app.console.alarms import channels, inbox, mute_list, mutes, test_alarms

MODULES = (
    inbox,
    channels,
    mute_list,
    mutes,
    test_alarms,
)
