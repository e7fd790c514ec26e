"""Addresses without a scheme, such as ``10.1.2.3:9999``, as executors before 2.2 and some clients have."""


def has_scheme(address: str) -> bool:
    """Whether an address names its protocol; no request is sent to one without."""
    return "://" in address
