"""Errors of mail servers in words: ``553 Mail from must equal authorized user (sender jobs@example.com)``."""

import smtplib

#: characters of an error that are kept
ERROR_MAX = 200


def mail_error(error: Exception) -> str:
    """Return the answer of a mail server, or why there is none, as one line."""
    match error:
        case smtplib.SMTPSenderRefused(smtp_code=code, smtp_error=answer, sender=sender):
            text = f"{_answer(code, answer)} (sender {sender})"
        case smtplib.SMTPResponseException(smtp_code=code, smtp_error=answer):
            text = _answer(code, answer)
        case smtplib.SMTPRecipientsRefused(recipients=recipients):
            answers = recipients.items()
            text = ", ".join(f"{_answer(*answer)} (receiver {receiver})" for receiver, answer in answers)
        case OSError(strerror=str(reason)):
            text = reason
        case _:
            text = str(error)
    return " ".join(text.split())[:ERROR_MAX] or type(error).__name__


def _answer(code: int, answer: bytes | str) -> str:
    """Return code and text of an answer; servers in China send GBK, too."""
    if isinstance(answer, str):
        return f"{code} {answer}"
    try:
        return f"{code} {answer.decode()}"
    except UnicodeDecodeError:
        return f"{code} {answer.decode('gb18030', 'replace')}"
