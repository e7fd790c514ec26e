"""Addresses without a scheme, as executors of before 2.2 and careless clients register them: ``10.1.2.3:9999``."""


def has_scheme(address: str) -> bool:
    """Whether an address says by which protocol it is called; one that does not is never called."""
    return "://" in address
