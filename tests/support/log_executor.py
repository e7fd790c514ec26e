"""Fake executor with the log of one run."""

import socket

from executor_client.logs.reading import LogReader
from executor_client.wire.protocol import LogRequest
from tests.support.fake_executor import Answer, FakeExecutor, Request


class LogExecutor(FakeExecutor):
    """An executor that has a log; ``reader``: it is one of ours, else it answers as Java does."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self.lines = lines
        self.reader: LogReader | None = None

    def _answer(self, connection: socket.socket, request: Request, answer: Answer) -> bool:
        return super()._answer(connection, request, self.answer_to(request))

    def answer_to(self, request: Request) -> Answer:
        """Return the answer with lines of the log."""
        body = request.json
        if self.reader is not None:
            asked = LogRequest.from_wire(body)
            count = body.get("lastLines", 0)
            result = self.reader.read_end(asked, count) if count else self.reader.read(asked)
            return Answer.json(200, content=result.to_wire())
        first = body["fromLineNum"]
        text = "".join(f"{line}\n" for line in self.lines[first - 1 :])
        content = {"fromLineNum": first, "toLineNum": len(self.lines), "logContent": text, "isEnd": False}
        return Answer.json(200, content=content)
