"""Errors of mail servers are one line without Python's notation."""

import smtplib
import ssl

from app.services.alarms.mail_errors import ERROR_MAX, mail_error
from tests.support.truth_table import truth_table


@truth_table(
    "error, text",
    [
        (
            smtplib.SMTPSenderRefused(553, b"Mail from must equal authorized user", "jobs@example.com"),
            "553 Mail from must equal authorized user (sender jobs@example.com)",
        ),
        (
            smtplib.SMTPRecipientsRefused({"bad@example.com": (550, b"no such\nuser")}),
            "550 no such user (receiver bad@example.com)",
        ),
        (smtplib.SMTPDataError(554, "请求被拒绝".encode("gbk")), "554 请求被拒绝"),
        (smtplib.SMTPDataError(554, "refusé".encode()), "554 refusé"),
        (smtplib.SMTPDataError(554, b"\xff"), "554 \ufffd"),
        (smtplib.SMTPAuthenticationError(535, b"5.7.8 wrong\npassword"), "535 5.7.8 wrong password"),
        (smtplib.SMTPConnectError(-1, "no answer"), "-1 no answer"),
        (smtplib.SMTPServerDisconnected("Connection unexpectedly closed"), "Connection unexpectedly closed"),
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
        (ssl.SSLCertVerificationError(1, "[SSL] self-signed"), "[SSL] self-signed"),
        (TimeoutError("timed out"), "timed out"),
        (TimeoutError(), "TimeoutError"),
        (smtplib.SMTPDataError(554, b"x" * 500), f"554 {'x' * (ERROR_MAX - 4)}"),
    ],
)
def test_an_error_in_words(error: Exception, text: str) -> None:
    assert mail_error(error) == text
