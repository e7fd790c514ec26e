"""Fixtures: one running installation per test process, on SQLite, attacked by every test of the tables."""

from collections.abc import Iterator

import pytest

from tests.acceptance.programs import free_port, wait_for
from tests.security.site import Site
from tests.support.acceptance import shared
from tests.support.fake_executor import FakeExecutor


@pytest.fixture(scope="session")
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Console, workers and our executor client, with the console's own generated access token."""
    folder = tmp_path_factory.mktemp("site")
    with FakeExecutor() as executor, shared(request.config, "sqlite", folder) as cluster:
        port = free_port()
        # an empty value is none: the console generates its token at the first start
        cluster.settings.update(XXL_JOB_ACCESS_TOKEN="", XXL_JOB_TRIGGER_TIMEOUT="10", XXL_JOB_LANGUAGE="en")
        made = Site(cluster, executor)
        console = cluster.start_console(wait=False)
        wait_for(console, cluster.console.answers, "it answers")
        made.add_bound_group()
        client = cluster.start_client(
            "tests.executor_client.recording",
            appname="own-executor",
            port=port,
            XXL_JOB_ACCESS_TOKEN=made.token,
            RECORDING=str(folder / "recording"),
        )
        cluster.start_workers()
        made.own_executor = f"http://127.0.0.1:{port}"
        wait_for(client, made.executor_answers, "it answers")
        yield made
