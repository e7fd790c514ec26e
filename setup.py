"""Version and requirements of the server's release; all else is in pyproject.toml.

Stops a build without the files that the set-up makes.
"""

import re
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
MADE = ("app/static/vendor/unpacked", "app/translations/zh_Hans_CN/LC_MESSAGES/messages.mo")
#: the one place of the version; the client is released with the server
VERSION_FILE = ROOT / "executor_client" / "wire" / "version.py"

if missing := [name for name in MADE if not (ROOT / name).exists()]:
    raise SystemExit(f"{missing[0]} is missing; run: python3 manage.py setup")
lines = [line.partition("#")[0].strip() for line in (ROOT / "requirements.in").read_text().splitlines()]
version = re.findall(r'^VERSION = "([^"]+)"$', VERSION_FILE.read_text(), re.MULTILINE)[0]
setup(
    version=version,
    install_requires=[*filter(None, lines), f"duetime-executor[cli]=={version}"],
    extras_require={"s3": ["minio"]},  # the log archive in a bucket
)
