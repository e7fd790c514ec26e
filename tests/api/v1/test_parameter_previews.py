"""Preview of the parameter of a job over the API, and what was sent with a run."""

from typing import Any

from app.clock import now_ms
from app.domain.enums import ParamForm
from app.models.job import Job
from app.models.variable import Variable
from tests.pipeline.steps import claim_fires
from tests.support.api_v1 import Api
from tests.support.factories import T0, make_job, make_log, save


def filling_job(text: str, **more: Any) -> Job:
    schedule = {"schedule_type": "CRON", "schedule_conf": "0 30 2 * * ? 2098", "time_zone": "UTC"}
    return make_job(**{"executor_param": text, "fill_parameter": 1, **schedule, **more})


def preview(api: Api, job: Job, query: str = "") -> dict[str, Any]:
    answer = api.get(f"/jobs/{job.id}/parameter-preview{query}")
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.get_json()
    return document


def test_the_next_runs_of_a_job(api: Api) -> None:
    job = filling_job("${time:yyyy-MM-dd} ${parent.result:-none} ${run.id} ${job.id} ${shard.index}")
    answer = preview(api, job, "?count=2")
    assert (answer["fill_parameter"], answer["time_zone"]) == (True, "UTC")
    assert [(run["local"], run["param"], run["reason"]) for run in answer["items"]] == [
        (f"2098-01-0{day}T02:30:00+00:00", f"2098-01-0{day} ‹parent.result› ‹run.id› {job.id} 0", "")
        for day in (1, 2)
    ]
    assert answer["items"][0]["logical_time"] == "2098-01-01T02:30:00.000Z"
    assert len(preview(api, job)["items"]) == 3


def test_the_run_that_stands_for_a_time(api: Api) -> None:
    job = filling_job("${time-1d:yyyyMMdd}", time_zone="Asia/Shanghai")
    (run,) = preview(api, job, "?logical_time=2024-04-30T16:00:00Z")["items"]
    assert (run["local"], run["param"]) == ("2024-05-01T00:00:00+08:00", "20240430")
    refused = api.get(f"/jobs/{job.id}/parameter-preview?logical_time=1960-01-01T00:00:00Z")
    assert refused.status_code == 422


def test_without_a_schedule_it_is_a_run_now(api: Api) -> None:
    job = filling_job("x", schedule_type="NONE", schedule_conf="")
    (run,) = preview(api, job)["items"]
    assert run["param"] == "x"


def test_secrets_are_only_named_and_what_is_missing_is_the_reason(api: Api) -> None:
    job = filling_job("${var.REGION} ${secret.TOKEN}")
    (run, *_) = preview(api, job)["items"]
    assert (run["param"], run["reason"]) == (None, "'${var.REGION}': variable REGION does not exist here")
    save(Variable(name="REGION", group_id=job.job_group, value="eu-1"))
    save(Variable(name="TOKEN", group_id=job.job_group, secret="s3cr3t-value-of-some-length"))
    answer = preview(api, job)
    assert answer["items"][0]["param"] == "eu-1 ‹secret TOKEN›"
    assert "s3cr3t" not in str(answer)


def test_shards_are_not_known_before(api: Api) -> None:
    job = filling_job("${shard.index}/${shard.total}", executor_route_strategy="SHARDING_BROADCAST")
    assert preview(api, job)["items"][0]["param"] == "‹shard.index›/‹shard.total›"


def test_a_parameter_that_is_sent_as_it_is(api: Api) -> None:
    answer = preview(api, filling_job("echo ${HOME}", fill_parameter=0))
    assert (answer["fill_parameter"], answer["items"][0]["param"]) == (False, "echo ${HOME}")


def test_a_run_has_its_template_and_what_was_sent(api: Api) -> None:
    job = filling_job("${time:yyyy} $${x}")
    run = api.post(f"/jobs/{job.id}/runs", {"logical_time": "2024-05-01T08:00:00Z"}).get_json()
    assert run["sent_param"] is None
    claim_fires(now_ms=now_ms())
    sent = api.get(f"/runs/{run['id']}").get_json()
    assert (sent["param"], sent["sent_param"]) == ("${time:yyyy} $${x}", "2024 ${x}")


def test_secrets_of_a_run_are_only_named(api: Api) -> None:
    job = filling_job("a ${secret.TOKEN}")
    log = make_log(
        job,
        trigger_time=T0,
        executor_param=job.executor_param,
        param_form=ParamForm.TEMPLATE.value,
        filled_param="a ${secret.TOKEN} $${secret.OTHER}",
    )
    assert api.get(f"/runs/{log.id}").get_json()["sent_param"] == "a ‹secret TOKEN› ${secret.OTHER}"


def test_run_again_may_repeat_the_secrets_of_the_job(api: Api) -> None:
    job = filling_job("a ${secret.TOKEN}")
    save(Variable(name="TOKEN", group_id=job.job_group, secret="s3cr3t-value-of-some-length"))
    log = make_log(job, trigger_time=T0, executor_param="a ${secret.TOKEN}", param_form=1, handle_code=200)
    assert api.post(f"/runs/{log.id}/retry").status_code == 202
    assert api.post(f"/jobs/{job.id}/runs", {"param": "b ${secret.TOKEN}"}).status_code == 422
