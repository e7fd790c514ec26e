"""Console under Sentry and OpenTelemetry: ``python -m tests.support.traced_console``.

Writes one JSON object: for each of the two the statements it has traced while the console starts, takes a
trigger and a callback, and looks for alarms. Nothing is sent anywhere.
"""

import json
import sys
from typing import Any

import sentry_sdk
from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sentry_sdk.envelope import Envelope
from sentry_sdk.integrations.sqlalchemy import SqlalchemyIntegration
from sentry_sdk.transport import Transport


class MemoryTransport(Transport):
    """Keeps the statements of Sentry's spans."""

    statements: list[str] = []

    def capture_envelope(self, envelope: Envelope) -> None:
        transaction: Any = envelope.get_transaction_event() or {"spans": []}
        self.statements += [span["description"] for span in transaction["spans"]]


def main() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    SQLAlchemyInstrumentor().instrument(tracer_provider=provider)
    sentry_sdk.init(
        "http://key@127.0.0.1:9/1",
        transport=MemoryTransport,
        integrations=[SqlalchemyIntegration()],
        default_integrations=False,
        auto_enabling_integrations=False,
        traces_sample_rate=1.0,
    )
    with sentry_sdk.start_transaction(name="console"):
        use_console()
    sentry_sdk.flush()
    attributes = [span.attributes or {} for span in exporter.get_finished_spans()]
    opentelemetry = [str(each["db.statement"]) for each in attributes if "db.statement" in each]
    sys.stdout.write(json.dumps({"sentry": MemoryTransport.statements, "opentelemetry": opentelemetry}))


def use_console() -> None:
    """Start the console on the configured database; trigger the sample job and report a result."""
    from app.clock import now_ms  # here: what imports create_engine earlier is not traced
    from app.factory import create_app
    from app.services.installation import startup
    from app.settings.config import Config
    from app.store.alarms import alarms

    config = Config.from_env(dotenv=None)
    app = create_app(config)
    startup.prepare(config)
    client, base = app.test_client(), config.context_path
    form = {"userName": "admin", "password": config.admin_password}
    assert client.post(f"{base}/login", data=form).get_json()["code"] == 200
    assert client.post(f"{base}/jobinfo/trigger?id=1").get_json()["code"] == 200
    token = {"XXL-JOB-ACCESS-TOKEN": config.access_tokens[0]}
    result = [{"logId": 1, "logDateTim": 0, "handleCode": 200}]
    assert client.post(f"{base}/api/callback", json=result, headers=token).get_json()["code"] == 200
    alarms.has_due(now_ms=now_ms())


if __name__ == "__main__":
    main()
