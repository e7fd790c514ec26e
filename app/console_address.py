"""Address of this host's console, and whether it answers: for the development runner and the watchdog."""

import urllib.error
import urllib.request

from app.config import Config


def console_address(config: Config) -> str:
    """Return the URL of the console on this host."""
    host = "127.0.0.1" if config.host in ("0.0.0.0", "::", "localhost") else config.host  # nosec B104
    return f"http://{f'[{host}]' if ':' in host else host}:{config.port}{config.context_path}"


def answers(url: str, *, error: bool = True, timeout_s: float = 2) -> bool:
    """Whether an HTTP server answers; ``error``: with an error status too."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(url, timeout=timeout_s).close()
    except urllib.error.HTTPError:
        return error
    except OSError:
        return False
    return True
