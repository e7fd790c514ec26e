"""API v1, as a script of a scenario calls it."""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import requests
from sqlalchemy import text

from app.domain.access.api_tokens import PREFIX, Grant, stored_rights, token_hash
from app.domain.access.permissions import Right
from tests.acceptance.cluster import Cluster


@dataclass(eq=False)
class Api:
    """API v1 with a token."""

    address: str
    token: str
    dice: random.Random
    answers: Counter[str] = field(default_factory=Counter)

    def __call__(self, method: str, path: str, body: Any = None, key: str = "") -> Any:
        """Return status and JSON of the answer; None: there was none."""
        headers = {"Authorization": f"Bearer {self.token}"} | ({"Idempotency-Key": key} if key else {})
        try:
            answer = requests.request(method, f"{self.address}{path}", json=body, headers=headers, timeout=10)
            found = answer.status_code, answer.json() if answer.content else None
        except requests.RequestException:
            return None
        self.answers[f"{method} {path.split('/')[1].partition('?')[0]} {answer.status_code}"] += 1
        return found


def api_of(cluster: Cluster, seed: int) -> Api:
    """Return the API of the console, with a token that may do everything."""
    token, rights = PREFIX + "b" * 43, stored_rights(Grant(frozenset(Right), True, None))
    sql = "INSERT INTO xxl_job_token (name, token_hash, rights) VALUES ('storm', :hash, :rights)"
    with cluster.engine().begin() as connection:
        connection.execute(text(sql), {"hash": token_hash(token), "rights": rights})
    return Api(f"{cluster.console.address}/api/v1", token, random.Random(seed))
