"""The console program: its hints fit the settings."""

import logging

import pytest

import wsgi
from app.settings.config import Config


@pytest.mark.parametrize(
    ("config", "hint"),
    [
        (Config(), "loopback only; set XXL_JOB_HOST=0.0.0.0"),
        (Config(proxy_count=1), ""),
        (Config(host="0.0.0.0"), "console without TLS"),
        (Config(host="0.0.0.0", proxy_count=1), ""),
    ],
    ids=["loopback", "proxy on this host", "open", "proxy elsewhere"],
)
def test_the_hint_at_the_start_fits_the_settings(
    config: Config, hint: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        wsgi._announce(config)
    address, *hints = caplog.messages
    assert address == f"console started address=http://{config.host}:8080/xxl-job-admin/"
    assert len(hints) == bool(hint)
    assert hint in "".join(hints)


def test_the_address_at_the_start_is_a_url_for_ipv6_too(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        wsgi._announce(Config(host="::1", proxy_count=1))
    assert caplog.messages == ["console started address=http://[::1]:8080/xxl-job-admin/"]
