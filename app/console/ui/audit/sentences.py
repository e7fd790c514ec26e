"""Sentences of the change history: one for each action, and the titles of their parts."""

from collections.abc import Mapping

from app.console.web.language import lazy_gettext as _l

#: actions by the first part of their code; ``%(object)s`` is the object with its name
SENTENCES: Mapping[str, Mapping[str, str]] = {
    "job": {
        "job.add": _l("added %(object)s"),
        "job.update": _l("changed %(object)s"),
        "job.remove": _l("deleted %(object)s"),
        "job.start": _l("switched on %(object)s"),
        "job.stop": _l("switched off %(object)s"),
        "job.trigger": _l("ran %(object)s once"),
        "job.withdraw": _l("withdrew a run of %(object)s"),
        "job.run_missing": _l("ran what a round of %(object)s missed"),
        "job.backfill": _l("started a backfill of %(object)s"),
        "job.backfill_pause": _l("paused a backfill of %(object)s"),
        "job.backfill_resume": _l("resumed a backfill of %(object)s"),
        "job.backfill_cancel": _l("cancelled a backfill of %(object)s"),
        "job.switched_off": _l("switched off %(object)s, which failed more often than it promises"),
        "job.ended": _l("switched off %(object)s, which has no further run"),
    },
    "glue": {"glue.save": _l("saved the code of %(object)s")},
    "log": {
        "log.kill": _l("killed %(object)s"),
        "log.clear": _l("cleared the log of %(object)s"),
        "log.download": _l("read the whole log of %(object)s"),
    },
    "run": {
        "run.start": _l("started a waiting run of %(object)s"),
        "run.release": _l("released the slot of %(object)s"),
    },
    "group": {
        "group.add": _l("added %(object)s"),
        "group.update": _l("changed %(object)s"),
        "group.remove": _l("deleted %(object)s"),
        "group.token": _l("ended the token changeover of %(object)s"),
        "group.drain": _l("drained an instance of %(object)s"),
        "group.undrain": _l("ended the drain of an instance of %(object)s"),
        "group.check": _l("checked the instances of %(object)s"),
        "group.token_show": _l("viewed the access token of %(object)s"),
    },
    "alarm": {
        "alarm.mute": _l("muted the alarms of %(object)s"),
        "alarm.unmute": _l("unmuted the alarms of %(object)s"),
        "alarm.test": _l("sent a test alarm for %(object)s"),
        "alarm.failed": _l("could not deliver an alarm of %(object)s"),
    },
    "channel": {
        "channel.add": _l("added %(object)s"),
        "channel.update": _l("changed %(object)s"),
        "channel.remove": _l("deleted %(object)s"),
        "channel.test": _l("tested %(object)s"),
    },
    "variable": {
        "variable.add": _l("added %(object)s"),
        "variable.update": _l("changed %(object)s"),
        "variable.remove": _l("deleted %(object)s"),
    },
    "limit": {
        "limit.set": _l("set %(object)s"),
        "limit.remove": _l("deleted %(object)s"),
    },
    "calendar": {
        "calendar.set": _l("set %(object)s"),
        "calendar.remove": _l("deleted %(object)s"),
    },
    "blackout": {
        "blackout.add": _l("made %(object)s"),
        "blackout.end": _l("ended %(object)s"),
    },
    "incident": {"incident.acknowledge": _l("acknowledged an incident of %(object)s")},
    "code": {
        "code.apply": _l("applied jobs as code"),
        "code.undo": _l("undid an apply of jobs as code"),
    },
    "task": {"task.cancel": _l("cancelled %(object)s")},
    "user": {
        "user.add": _l("added %(object)s"),
        "user.update": _l("changed %(object)s"),
        "user.remove": _l("deleted %(object)s"),
        "user.password": _l("changed the password of %(object)s"),
        "user.link": _l("changed the sign-on of %(object)s"),
        "user.grace_end": _l("ended the grace period for the common password of %(object)s"),
    },
    "token": {
        "token.add": _l("created %(object)s"),
        "token.revoke": _l("revoked %(object)s"),
    },
    "login": {
        "login": _l("logged in"),
        "logout": _l("logged out"),
        "login.end": _l("ended logins of %(object)s"),
        "login.confirm": _l("confirmed the password"),
        "login.refused": _l("was refused login"),
    },
    "node": {
        "node.notice": _l("sent a notice about this node"),
        "node.calendars": _l("sent a notice about calendars that end"),
        "node.settled": _l("settled the database, which had lost its last commits"),
    },
    "refused": {
        "refused.admin": _l("requested a page for administrators"),
        "refused.api_token": _l("sent an API token that is not valid"),
        "refused.form": _l("sent a form that has expired"),
        "refused.login": _l("must wait after failed logins"),
        "refused.more": _l("further refusals"),
        "refused.no_result": _l("reported runs without a result"),
        "refused.no_token": _l("sent no access token"),
        "refused.object": _l("requested %(object)s without a right on it"),
        "refused.other_run": _l("reported runs whose ids other runs have now"),
        "refused.origin": _l("sent a form from another site"),
        "refused.registration": _l("could not register an executor"),
        "refused.right": _l("made a request without permission"),
        "refused.token": _l("sent a wrong access token"),
        "refused.value": _l("sent a value that is not allowed"),
    },
}
#: titles of the parts above, for the filter
PARTS = {
    "job": _l("Jobs"),
    "glue": _l("GLUE code"),
    "log": _l("Runs and logs"),
    "run": _l("Waiting runs"),
    "group": _l("Executors"),
    "alarm": _l("Alarms"),
    "channel": _l("Alarm channels"),
    "variable": _l("Variables and secrets"),
    "limit": _l("Limits"),
    "calendar": _l("Calendars"),
    "blackout": _l("Blackouts"),
    "incident": _l("Incidents"),
    "code": _l("Jobs as code"),
    "task": _l("Tasks"),
    "user": _l("Users"),
    "token": _l("API tokens"),
    "login": _l("Logins"),
    "node": _l("Nodes"),
    "refused": _l("Refusals"),
}
#: sentences of entries that concern no single object
WITHOUT_OBJECT = {
    "log.clear": _l("cleared the log"),
    "alarm.test": _l("sent a test alarm to the channels of the installation"),
    "group.token_show": _l("viewed the access token of the console"),
    "alarm.failed": _l("could not deliver a notice"),
    "refused.object": _l("requested something without a right on it"),
}
