"""ASGI mount: the executor's endpoints on the server of an ASGI application, such as FastAPI or Django."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

from executor_client.mounting.wsgi import below
from executor_client.service.answers import TOO_LARGE, Answer, Service
from executor_client.service.endpoints import BODY_MAX_BYTES, Request
from executor_client.wire.errors import ExecutorError
from executor_client.wire.protocol import TOKEN_HEADER

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

_TOKEN_KEY = TOKEN_HEADER.lower().encode()


class Lifecycle(Protocol):
    """Executor that starts and stops with the server."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class AsgiMount:
    """ASGI application: answers the executor's paths below a prefix, passes everything else on.

    It starts the executor when the server starts, and stops it when the server stops (*lifespan*).
    """

    def __init__(self, service: Service, executor: Lifecycle, fallback: AsgiApp, prefix: str = "") -> None:
        self._service = service
        self._executor = executor
        self._fallback = fallback
        self._prefix = prefix

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Handle one request, connection or lifespan."""
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
            return
        path = None
        if scope["type"] == "http":
            root = scope.get("root_path") or ""
            path = below(self._prefix, below(root, scope["path"]) or scope["path"])
        if path is None or not self._service.is_path(path):
            await self._fallback(scope, receive, send)
            return
        query = scope.get("query_string", b"").decode("latin-1")
        answer = await self._answer(scope, receive, f"{path}?{query}" if query else path)
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
        headers.append((b"Content-Length", str(len(answer.body)).encode()))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def _answer(self, scope: MutableMapping[str, Any], receive: Receive, target: str) -> Answer:
        body = bytearray()
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > BODY_MAX_BYTES:
                return TOO_LARGE
        token = next((value for name, value in scope["headers"] if name.lower() == _TOKEN_KEY), b"")
        peer = (scope.get("client") or ("",))[0]
        request = Request(scope["method"], target, token.decode("latin-1"), peer, bytes(body))
        # In a thread, because it waits for the disk and perhaps for another worker.
        return await asyncio.to_thread(self._service.answer, request)

    async def _live(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Start and stop the executor around the lifespan of the application, if it has one."""
        try:
            await asyncio.to_thread(self._executor.start)
        except ExecutorError as exc:
            await receive()
            await send({"type": "lifespan.startup.failed", "message": f"executor_client: {exc}"})
            return
        message_types: list[str] = []

        async def receive_and_stop() -> Message:
            message = await receive()
            message_types.append(message["type"])
            if message["type"] == "lifespan.shutdown":
                await asyncio.to_thread(self._executor.stop)
            return message

        try:
            await self._fallback(scope, receive_and_stop, send)
        except Exception:
            if message_types:
                raise
            await self._live_alone(receive_and_stop, send)
        finally:
            await asyncio.to_thread(self._executor.stop)

    async def _live_alone(self, receive: Receive, send: Send) -> None:
        """Answer the lifespan for an application without one, such as Django's."""
        while True:
            kind = (await receive())["type"]
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return
