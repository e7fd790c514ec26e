"""${message}

Revision: ${up_revision}, after ${down_revision | comma,n}.
Each step checks what is present, so that an interrupted upgrade can be repeated without transactional DDL.
"""

import sqlalchemy as sa
from alembic import op

revision = "${up_revision}"
down_revision = "${down_revision}"


def upgrade() -> None:
    """Change the schema."""
    ${upgrades if upgrades else "pass"}
