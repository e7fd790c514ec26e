"""Helpers of the tests of console web, for all that need them."""

from flask import Flask
from werkzeug.routing import Rule

#: values of a URL's variable parts
SAMPLE = {
    "job_id": 1,
    "log_id": 1,
    "group_id": 1,
    "user_id": 1,
    "version_id": 1,
    "filename": "css/app.css",
    "act": "start",
    "list_name": "jobs",
}


def rules_of(app: Flask) -> list[Rule]:
    return [rule for rule in app.url_map.iter_rules() if rule.endpoint != "static"]
