"""`xxl_job_throttle`: counters of failed logins, wrong API tokens and test alarms."""

from sqlalchemy import BigInteger, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base

SUBJECT_MAX = 120


class Throttle(Base):
    """Counter of failed logins, wrong tokens or test alarms of a subject.

    Subjects are accounts (``account:<name>``), sources that an account knows (``known:<digest>:<source>``),
    sources of logins (``address:<ip>``) and of API tokens (``token-address:<ip>``), and testing users
    (``test-alarm:<id>``).
    """

    __tablename__ = "xxl_job_throttle"

    subject: Mapped[str] = mapped_column(String(SUBJECT_MAX), primary_key=True)
    failures: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    first_ms: Mapped[Millis] = mapped_column(BigInteger)
    last_ms: Mapped[Millis] = mapped_column(BigInteger)
    #: attempts before this instant are refused unchecked
    blocked_until_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
