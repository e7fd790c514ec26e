"""Handlers of jobs, with the models of the site."""

from django.db import close_old_connections, connection

from executor_client import context, job


@job("closeOrders")
def close_orders() -> str:
    """Count by SQL what a real handler would change by models."""
    close_old_connections()  # a job thread may have waited longer than the database keeps connections
    context.log("closing orders of %s", context.param)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 + 2")
        (count,) = cursor.fetchone()
    return f"{count} orders closed"
