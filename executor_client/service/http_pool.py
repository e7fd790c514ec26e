"""HTTP connection pools to a console: verified TLS, no retries, no redirects."""

import ipaddress
import os
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import certifi
import urllib3
from urllib3.exceptions import NewConnectionError
from urllib3.exceptions import TimeoutError as TimedOut
from urllib3.util import make_headers


def open_pool(authorities: str | None, proxy: str | None = None) -> urllib3.PoolManager:
    """Return a pool. ``authorities``: file or folder of CA certificates, None for certifi's.

    Raises OSError without that file, and urllib3's HTTPError for a proxy of an unknown kind.
    """
    path = authorities or certifi.where()
    if not os.path.exists(path):  # noqa: PTH110 - urllib3 takes text
        raise OSError(f"the file of TLS authorities does not exist: {path}")
    folder, file = (path, None) if os.path.isdir(path) else (None, path)  # noqa: PTH112
    tls: dict[str, Any] = {"cert_reqs": "CERT_REQUIRED", "ca_certs": file, "ca_cert_dir": folder}
    if proxy is None:
        return urllib3.PoolManager(**tls)
    if proxy.startswith("socks"):
        return _socks_pool(proxy, tls)
    return urllib3.ProxyManager(proxy, proxy_headers=make_headers(proxy_basic_auth=_user_of(proxy)), **tls)


def _socks_pool(proxy: str, tls: Mapping[str, Any]) -> urllib3.PoolManager:
    try:
        from urllib3.contrib.socks import SOCKSProxyManager  # type: ignore[attr-defined, unused-ignore]
    except ImportError as exc:
        raise OSError("a SOCKS proxy needs the package PySocks") from exc
    return SOCKSProxyManager(proxy, **tls)


def is_timeout(error: Exception) -> bool:
    """Return whether an error is a timeout; for urllib3 a refused connection is one too."""
    return isinstance(error, TimedOut) and not isinstance(error, NewConnectionError)


def user_headers(url: str) -> dict[str, str]:
    """Return the header with user and password of a URL; empty without them."""
    return dict(make_headers(basic_auth=_user_of(url)))


def _user_of(url: str) -> str | None:
    parts = urlsplit(url)
    return f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else None


def proxy_of_environment(url: str) -> str | None:
    """Return the proxy that the environment names for a URL; None to connect directly."""
    parts = urlsplit(url)
    if _is_exempt(parts.hostname or "", parts.port):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


def _is_exempt(host: str, port: int | None) -> bool:
    """Return whether ``no_proxy`` names a host; urllib does not know networks such as 10.0.0.0/8."""
    if urllib.request.proxy_bypass(f"{host}:{port}" if port else host):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return any(
        address in network for network in _networks(os.environ.get("no_proxy") or os.environ.get("NO_PROXY"))
    )


def _networks(names: str | None) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    networks = []
    for name in (names or "").split(","):
        try:
            networks.append(ipaddress.ip_network(name.strip(), strict=False))
        except ValueError:
            continue
    return networks
