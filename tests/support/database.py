"""Helpers of the tests of database, for all that need them."""


class Lost(Exception):
    """Driver error with a code."""

    def __init__(self, *args: object, sqlstate: str | None = None) -> None:
        super().__init__(*args)
        self.sqlstate = sqlstate
