"""Helpers of the tests of security, for all that need them."""

import re

import pytest

#: calls after which objects of the place are gone or elsewhere
DESTRUCTIVE = re.compile(
    r"/(jobinfo|jobgroup|joblog|user|variables)/(\{\w+\}/)?(remove|delete|clean|clearLog)"
)


#: examples a request
EXAMPLES = pytest.mark.parametrize(
    "examples", [3, pytest.param(60, marks=(pytest.mark.extensive, pytest.mark.timeout(1_800)))]
)


COOKIE = "XXL_JOB_LOGIN_IDENTITY"
