"""Kinds of alarm channels that are set up in the console, and the fields of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from app.domain.text.texts import N_


class ChannelKind(StrEnum):
    """Kind of an alarm channel (`xxl_job_channel.kind`)."""

    MAIL = "mail"
    SLACK = "slack"
    FEISHU = "feishu"
    DINGTALK = "dingtalk"
    WECOM = "wecom"
    NTFY = "ntfy"
    WEBHOOK = "webhook"
    OTHER = "apprise"


@dataclass(frozen=True, slots=True)
class ChannelField:
    """Field of a kind. A secret is not shown again after it was saved."""

    name: str
    label: str
    #: where to find the value
    hint: str
    example: str = ""
    is_secret: bool = False
    is_required: bool = True
    default: str = ""


@dataclass(frozen=True, slots=True)
class KindOfChannel:
    """What a kind is called, and its fields in the order of the form."""

    title: str
    fields: tuple[ChannelField, ...]


def _address(label: str, hint: str, example: str) -> ChannelField:
    return ChannelField("url", label, hint, example, is_secret=True)


KINDS: Mapping[ChannelKind, KindOfChannel] = {
    ChannelKind.MAIL: KindOfChannel(
        N_("Mail"),
        (
            ChannelField(
                "addresses",
                N_("Mail addresses"),
                N_("Separate several addresses by commas."),
                "ops@example.com, oncall@example.com",
            ),
        ),
    ),
    ChannelKind.SLACK: KindOfChannel(
        "Slack",
        (
            _address(
                N_("Webhook URL"),
                N_(
                    "In Slack: api.slack.com/apps, your app, Incoming Webhooks, Add New Webhook; copy"
                    " its URL."
                ),
                "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXX",
            ),
        ),
    ),
    ChannelKind.FEISHU: KindOfChannel(
        N_("Feishu or Lark"),
        (
            _address(
                N_("Webhook URL"),
                N_(
                    "In the group: Settings, Bots, Add bot, Custom bot; copy its webhook. As security setting"
                    " choose the keyword Duetime; signatures are not supported."
                ),
                "https://open.feishu.cn/open-apis/bot/v2/hook/xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
            ),
        ),
    ),
    ChannelKind.DINGTALK: KindOfChannel(
        N_("DingTalk"),
        (
            _address(
                N_("Webhook URL"),
                N_("In the group: Group settings, Bots, Add robot, Custom; copy its webhook."),
                "https://oapi.dingtalk.com/robot/send?access_token=xxxxxxxx",
            ),
            ChannelField(
                "secret",
                N_("Secret"),
                N_(
                    "Only with the security setting Additional signature; without it choose the keyword"
                    " Duetime."
                ),
                "SECxxxxxxxx",
                is_secret=True,
                is_required=False,
            ),
        ),
    ),
    ChannelKind.WECOM: KindOfChannel(
        N_("WeCom"),
        (
            _address(
                N_("Webhook URL"),
                N_("In the group chat: Group robots, Add, and copy its webhook."),
                "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
            ),
        ),
    ),
    ChannelKind.NTFY: KindOfChannel(
        "ntfy",
        (
            ChannelField(
                "server",
                N_("Server"),
                N_("Address of the ntfy server."),
                "https://ntfy.sh",
                default="https://ntfy.sh",
            ),
            ChannelField(
                "topic",
                N_("Topic"),
                N_(
                    "Subscribe to the same topic in the ntfy app. On a public server choose a name that is"
                    " hard to guess."
                ),
                "xxl-job-7f3k2p",
            ),
            ChannelField(
                "token",
                N_("Access token"),
                N_("Only for protected topics: in the web app, Account, Access tokens."),
                "tk_xxxxxxxx",
                is_secret=True,
                is_required=False,
            ),
        ),
    ),
    ChannelKind.WEBHOOK: KindOfChannel(
        N_("Webhook"),
        (
            _address(
                "URL",
                N_("Receives a POST with a JSON object: job, run, state, reason, link and the text."),
                "https://alarms.example.com/xxl-job",
            ),
        ),
    ),
    ChannelKind.OTHER: KindOfChannel(
        N_("Other (Apprise)"),
        (
            _address(
                N_("Apprise URL"),
                N_(
                    "For Telegram, Discord, PagerDuty, Opsgenie, Gotify, Bark and others:"
                    " appriseit.com/services"
                ),
                "tgram://123456789:AAxxxxxxxx/12315544",
            ),
        ),
    ),
}
