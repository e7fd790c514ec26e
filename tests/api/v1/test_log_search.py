"""Search of archived logs over the API."""

from app.domain.access.permissions import Right
from app.settings.config import Config
from tests.support.api_v1 import Api, make_token
from tests.support.archive import archive, folder_in
from tests.support.factories import make_job


def test_archived_logs_are_searched(api: Api, config: Config) -> None:
    store, job, other = folder_in(config.home), make_job(), make_job()
    first = archive(store, job, ["start", "Order 17 failed", "end"], run={"handle_code": 500})
    second = archive(store, other, ["order 18 failed"])
    answer = api.get("/logs/search?q=order 1&ignore_case=true&limit=1").json
    [hit] = answer["items"]
    assert (hit["run_id"], answer["searched_to"]) == (str(second.id), "2024-05-01T03:04:05.000Z")
    answer = api.get(f"/logs/search?q=order 1&ignore_case=true&cursor={answer['next_cursor']}").json
    assert answer["items"] == [
        {
            "run_id": str(first.id),
            "job_id": job.id,
            "group_id": job.job_group,
            "state": "failed",
            "started_at": "2024-05-01T03:04:05.000Z",
            "line": 2,
            "text": "Order 17 failed",
            "marks": [{"start": 0, "end": 7}],
            "cut": False,
        }
    ]
    assert answer["next_cursor"] is None
    [hit] = api.get(r"/logs/search?regex=true&q=^\w%2B 1\d failed&state=unsuccessful").json["items"]
    assert hit["line"] == 2
    assert api.get(f"/logs/search?q=order&job_id={job.id}").json["items"] == []
    bound = api.with_token(make_token(Right.VIEW, group_ids=[other.job_group]))
    assert [hit["run_id"] for hit in bound.get("/logs/search?q=failed").json["items"]] == [str(second.id)]
    for query in ("", "q=", "q=(&regex=true", "q=x&cursor=x", "q=%0A"):
        assert api.get(f"/logs/search?{query}").status_code == 422
