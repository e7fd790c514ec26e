"""Sources of changes, as versions of jobs and the change history keep them: ``apply infra@1a2b3c``.

Empty: the console.
"""

APPLY, UNDO, IMPORT, RESTORE, TOKEN = "apply", "undo of apply", "import", "restore", "token"


def source_text(kind: str, name: object) -> str:
    """Return the source of a change of one of these kinds."""
    return f"{kind} {name}".rstrip()


def name_in(source: str, kind: str) -> str | None:
    """Return the name in a source of this kind; None for one of another kind."""
    return source.removeprefix(f"{kind} ") if source.startswith(f"{kind} ") else None
