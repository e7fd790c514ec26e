"""check-config: what is in effect and where it came from, without secrets."""

from pathlib import Path

import pytest

from app.commands.settings import setting_lines
from app.errors import NotConfigured
from app.services.installation.preconditions import check_settings
from app.settings.config import SECRET_VARIABLES, SETTINGS, Config

#: every secret; the last ones have a shape of their own
SECRETS = {name: f"SECRET-of-{name}-0123456789" for name in SECRET_VARIABLES} | {
    "XXL_JOB_DATABASE_URL": "mysql+pymysql://xxl:SECRET-word@db/xxl_job",
    "XXL_JOB_ALARM_URLS": "json://SECRET@hooks.example",
    "XXL_JOB_HEARTBEAT_URL": "https://hc.example/SECRET",
    "XXL_JOB_LOG_ARCHIVE_URL": "s3://logs?access_key=key&secret_key=SECRET",
}
OTHERS = {
    "XXL_JOB_MAIL_HOST": "smtp.example",
    "XXL_JOB_MAIL_FROM": "jobs@x.example",
    "XXL_JOB_OIDC_ISSUER": "https://id.example",
    "XXL_JOB_OIDC_CLIENT_ID": "xxl-job",
    "XXL_JOB_OIDC_RIGHTS": "ops=payments:operate,edit",
    "XXL_JOB_PUBLIC_URL": "https://jobs.example",
}


def lines(config: Config) -> dict[str, tuple[str, str]]:
    """Return value and source by variable."""
    split = [line.split("  # ") for line in setting_lines(config)]
    return {
        text.partition("=")[0]: (text.partition("=")[2].rstrip(), source.strip()) for text, source in split
    }


def test_secrets_are_hidden_and_all_settings_shown(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(SECRETS["XXL_JOB_SECRET_KEY"])
    given = {**SECRETS, **OTHERS, "XXL_JOB_SECRET_KEY": "", "XXL_JOB_SECRET_KEY_FILE": str(file)}
    config = Config.from_env(given, dotenv=None)
    shown = lines(config)
    assert set(shown) == set(SETTINGS)
    assert "SECRET" not in str(list(shown.values()))
    assert shown["XXL_JOB_DATABASE_URL"] == (
        "mysql+pymysql://xxl:***@db/xxl_job?charset=utf8mb4",
        "environment",
    )
    assert shown["XXL_JOB_SECRET_KEY"] == ("***", str(file))
    assert (shown["XXL_JOB_LOG_ARCHIVE_URL"][0], shown["XXL_JOB_LOG_ARCHIVE_RUN_MB"][0]) == ("***", "16")
    assert shown["XXL_JOB_OIDC_RIGHTS"] == ("ops=payments:edit,operate", "environment")


def test_defaults_and_generated_secrets_are_named(tmp_path: Path) -> None:
    shown = lines(Config.from_env({"XXL_JOB_HOME": str(tmp_path)}, dotenv=None))
    assert shown["XXL_JOB_PORT"] == ("8080", "default")
    note = "the language of the user or the browser comes first; alarms are in English"
    assert shown["XXL_JOB_LANGUAGE"] == ("zh_CN", f"default; {note}")
    assert shown["XXL_JOB_DATABASE_URL"] == (f"sqlite:///{tmp_path}/xxl_job.db", "default")
    assert shown["XXL_JOB_ACCESS_TOKEN"] == ("", f"{tmp_path}/access_token, generated at the first start")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("foo://x", r"Apprise does not recognise foo://…$"),
        ("secret-word", r"Apprise does not recognise …$"),
        ("json://hooks.example/?template=/etc/passwd", r"its parameter template= is not allowed"),
        ("json://169.254.169.254/secret-word", r"is a link-local or metadata address"),
    ],
)
def test_an_alarm_url_that_cannot_work_is_refused_at_the_start(url: str, reason: str) -> None:
    with pytest.raises(NotConfigured, match="^XXL_JOB_ALARM_URLS: .*" + reason) as caught:
        check_settings(Config(alarm_urls=("json://hooks.example/x", url)))
    assert "secret-word" not in str(caught.value)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_alarm_urls_that_can_work_are_accepted() -> None:
    check_settings(Config(alarm_urls=("mailto://u:p@mail.example", "ntfy://ntfy.example/jobs")))
