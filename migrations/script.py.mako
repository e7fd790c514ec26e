"""${message}

Revision: ${up_revision}, after ${down_revision | comma,n}.
"""

import sqlalchemy as sa
from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change the schema; every step looks first, so that a broken-off upgrade can be run again."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Not offered: a backup is the way back."""
    raise NotImplementedError
