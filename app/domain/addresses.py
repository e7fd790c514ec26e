"""Addresses without a scheme, as executors before 2.2 and some clients register them: ``10.1.2.3:9999``."""


def has_scheme(address: str) -> bool:
    """Whether an address names its protocol; one without is never called."""
    return "://" in address
