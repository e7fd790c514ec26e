"""The columns a database of XXL-JOB before 2.3 lacks: schedule types instead of one cron a job, and times of update.

Revision: 0010, after 0009. It completes a database adopted by this upgrade, and one that an earlier release adopted as it was.
Source: spec/schema.md, section 12. `job_cron` stays, and may be empty from now on.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

JOB, GROUP, REPORT = "xxl_job_info", "xxl_job_group", "xxl_job_log_report"
OLD_CRON = "job_cron"


def upgrade() -> None:
    """Add what is missing; a broken-off upgrade can be run again."""
    added: list[tuple[str, sa.Column[object]]] = [
        (JOB, sa.Column("schedule_type", sa.String(50), nullable=False, server_default="NONE")),
        (JOB, sa.Column("schedule_conf", sa.String(128))),
        (JOB, sa.Column("misfire_strategy", sa.String(50), nullable=False, server_default="DO_NOTHING")),
        (GROUP, sa.Column("update_time", sa.DateTime())),
        (REPORT, sa.Column("update_time", sa.DateTime())),
    ]
    for table, column in added:
        if column.name not in columns_of(table):
            op.add_column(table, column)
    address_list = columns_of(GROUP)["address_list"]
    if getattr(address_list, "length", None) is not None:
        with op.batch_alter_table(GROUP) as batch:
            batch.alter_column(
                "address_list", type_=sa.Text(), existing_type=address_list, existing_nullable=True
            )
    take_over_crons()


def columns_of(table: str) -> dict[str, sa.types.TypeEngine[object]]:
    """Return column name -> type."""
    return {column["name"]: column["type"] for column in sa.inspect(op.get_bind()).get_columns(table)}


def take_over_crons() -> None:
    """Make the old crons schedules, once: when it is done, the old column takes NULL, because nothing writes it any more."""
    old = [
        column
        for column in sa.inspect(op.get_bind()).get_columns(JOB)
        if column["name"] == OLD_CRON and not column["nullable"]
    ]
    if not old:
        return
    job = sa.table(
        JOB, *(sa.column(name, sa.String) for name in (OLD_CRON, "schedule_type", "schedule_conf"))
    )
    unscheduled = (job.c.schedule_type == "NONE", job.c.schedule_conf.is_(None), job.c.job_cron != "")
    op.execute(sa.update(job).where(*unscheduled).values(schedule_type="CRON", schedule_conf=job.c.job_cron))
    with op.batch_alter_table(JOB) as batch:
        batch.alter_column(OLD_CRON, nullable=True, existing_type=old[0]["type"], existing_nullable=False)


def downgrade() -> None:
    """Not offered: a backup is the way back."""
    raise NotImplementedError
