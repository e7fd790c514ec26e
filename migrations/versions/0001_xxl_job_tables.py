"""Start of an upgrade: from here 0011_own_schema continues, on the tables of an ``xxl_job`` database if any.

Revision: 0001, the first. Revisions that were replaced start here again, so that they are not taken for a
database of XXL-JOB alone.
"""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Change nothing."""
