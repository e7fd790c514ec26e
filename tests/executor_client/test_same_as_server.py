"""What the client knows of the server: the terms of jobs, and the names of its variables."""

from typing import get_args

from app.domain.code.document import JOB_MEMBERS
from app.domain.enums import BlockStrategy, MisfireStrategy, RouteStrategy
from app.domain.enums import Delivery as StoredDelivery
from app.settings.config import CLI_VARIABLES, SECRET_VARIABLES
from app.settings.config import SETTINGS as SETTINGS_OF_CONSOLE
from executor_client import ExecutorConfig
from executor_client.config.config import VARIABLES
from executor_client.handlers import declarations
from executor_client.handlers.declarations import Block, Delivery, Misfire, Route, Terms


def test_the_terms_are_those_of_the_console() -> None:
    """Each term is typed and read, and is a member of jobs as code; enumerations have its values."""
    names = set(declarations._READERS)
    assert names == set(Terms.__annotations__)
    own = {"alarm_channels", "enabled"}
    assert {declarations.MEMBERS.get(name, name) for name in names} <= {*JOB_MEMBERS, *own}
    for literal, stored in (
        (Route, RouteStrategy),
        (Block, BlockStrategy),
        (Misfire, MisfireStrategy),
        (Delivery, StoredDelivery),
    ):
        assert set(get_args(literal)) == {each.value for each in stored}


def test_the_variables_of_the_console_are_ignored() -> None:
    of_console = {*SETTINGS_OF_CONSOLE, *(f"{each}_FILE" for each in SECRET_VARIABLES), *CLI_VARIABLES}
    others = dict.fromkeys(of_console - set(VARIABLES), "x")
    assert ExecutorConfig.from_env(others) == ExecutorConfig.from_env({})
