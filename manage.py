#!/usr/bin/env python3
"""Set up, run and check the program: ``python3 manage.py WORD [ARGUMENTS]``; the Makefile has a target for each word.

setup    create .venv, install the pinned requirements, unpack the browser's files
run      setup, then console, workers and a demo executor until Ctrl-C
test     setup with the test tools, then pytest with the arguments
check    ruff, mypy and pytest: what must pass on every commit
bench    without an argument list the benches, with a name run it
faults   run the fault harness; ARGS: scenario names, or `all`

Standard library only, and only syntax of Python 3.6: an old interpreter must be able to read this file to say that it is too old.
"""

import ast
import ctypes
import glob
import hashlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile

ROOT = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
#: what was installed into .venv: where it lies, and the hash of each requirements file
STAMP = os.path.join(VENV, "installed.json")
VENDOR = os.path.join(ROOT, "app", "static", "vendor")
VENDOR_STAMP = os.path.join(VENDOR, "unpacked")
#: interpreters looked for on PATH where the one at hand is too old
NEWER_PYTHONS = ("python3.11", "python3.12", "python3.13")
#: the browser's files: folder under vendor/, where they lie in an installed package or in a wheel of requirements-assets.txt
ASSETS = (
    ("bootstrap", "flask_bootstrap/static/bootstrap5/css/bootstrap.min.css"),
    ("bootstrap", "flask_bootstrap/static/bootstrap5/js/bootstrap.min.js"),
    ("bootstrap", "flask_bootstrap/static/bootstrap5/umd/popper.min.js"),
    ("bootstrap-icons", "flask_bootstrap/static/bootstrap5/css/font/bootstrap-icons.min.css"),
    ("bootstrap-icons/fonts", "flask_bootstrap/static/bootstrap5/css/font/fonts/*.woff2"),
    ("htmx", "django_htmx/static/django_htmx/htmx-2.min.js"),
    ("codemirror", "nicegui/elements/codemirror/dist/*.js"),
    ("echarts", "nicegui/elements/echart/dist/*.js"),
)
#: files of bench/ that benches use
NO_BENCHES = ("harness", "stub_executor")
#: seconds a part may take to answer after its start, and to end after it was asked to
START_S = 60
STOP_S = 25
#: how many of its last lines are shown of a part that failed
LAST_LINES = 12
#: the demo executor's application name, known to `flask seed-demo` too
DEMO_APPNAME = "xxl-job-executor-sample"
#: what the settings say, asked of the program itself so that .env and defaults are read in one place
ASK_CONFIG = """
import json, sys
from app.config import Config
from app.errors import NotConfigured
from app.home import access_tokens
try:
    config = Config.from_env()
    token = access_tokens(config)[0]
except NotConfigured as exc:
    sys.exit(str(exc))
answer = {"host": config.host, "port": config.port, "path": config.context_path, "home": str(config.home), "token": token}
json.dump(answer | {"given": bool(config.admin_password)}, sys.stdout)
"""


class Failed(Exception):
    """A word cannot go on; the text is the one line shown."""


def main():
    os.chdir(ROOT)
    require_python()
    words = {"setup": setup, "run": run, "test": test, "check": check, "bench": bench, "faults": faults}
    if len(sys.argv) < 2 or sys.argv[1] not in words:
        print(__doc__.strip())
        return 0 if sys.argv[1:] in ([], ["help"], ["--help"], ["-h"]) else 2
    try:
        return words[sys.argv[1]](sys.argv[2:]) or 0
    except Failed as exc:
        print("error: " + str(exc), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130


def require_python():
    """Go on under a newer interpreter where this one is too old, or end with one line."""
    if sys.version_info >= (3, 11):
        return
    for name in NEWER_PYTHONS:
        newer = shutil.which(name)
        if newer:
            os.execv(newer, [newer, os.path.join(ROOT, "manage.py")] + sys.argv[1:])
    sys.exit(
        "Python 3.11 or newer is needed, this is %d.%d (and none of %s is on PATH)"
        % (sys.version_info[:2] + (", ".join(NEWER_PYTHONS),))
    )


# --- setup ----------------------------------------------------------------------------------------------------------------------


def setup(_arguments=(), tools=False):
    """Make .venv hold what the requirements say, and vendor/ the browser's files; next to nothing where it already does."""
    if not os.access(ROOT, os.W_OK):
        raise Failed("%s cannot be written; .venv and the program's files go there" % ROOT)
    make_venv()
    install("requirements.txt", covered_by="requirements-dev.txt")
    if tools:
        install("requirements-dev.txt")
    unpack_assets()


def make_venv():
    """Create .venv, anew if it is broken or was moved here from another folder (its scripts name that one)."""
    moved = read_stamp().get("root", ROOT) != ROOT
    if os.path.exists(PYTHON) and not moved:
        return
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        raise Failed("the venv module is missing; on Debian and Ubuntu: apt install python3-venv")
    print("Creating .venv with Python %d.%d ..." % sys.version_info[:2], flush=True)
    command(sys.executable, "-m", "venv", "--clear", VENV, failure="creating .venv failed")


def install(requirements, covered_by=None):
    """Install a requirements file unless the stamp says that this very text, or one that holds all of it, is installed."""
    stamp = read_stamp()
    wanted = {name: file_hash(name) for name in (requirements, covered_by) if name}
    if any(stamp.get(name) == text for name, text in wanted.items()):
        return
    print("Installing %s ..." % requirements, flush=True)
    pip("install", "--require-hashes", "-r", requirements, failure="installing %s failed" % requirements)
    with open(STAMP, "w") as stream:
        json.dump({**stamp, "root": ROOT, requirements: wanted[requirements]}, stream)


def unpack_assets():
    """Fill app/static/vendor/ from the installed packages and the pinned wheels, all or nothing."""
    wanted = file_hash("requirements-assets.txt", "requirements.txt", "manage.py")
    if os.path.exists(VENDOR_STAMP) and read_text(VENDOR_STAMP) == wanted:
        return
    print("Unpacking the browser's files ...", flush=True)
    with tempfile.TemporaryDirectory(prefix="vendor-", dir=VENV) as work:
        options = (
            "--no-deps",
            "--only-binary",
            ":all:",
            "--require-hashes",
            "-r",
            "requirements-assets.txt",
            "-d",
            work,
        )
        pip("download", *options, failure="downloading the browser's files failed")
        for wheel in glob.glob(os.path.join(work, "*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(work, [name for name in archive.namelist() if name.endswith(".js")])
        new = os.path.join(work, "vendor")
        for folder, pattern in ASSETS:
            found = glob.glob(os.path.join(work, pattern)) + glob.glob(
                os.path.join(VENV, "lib", "python3*", "site-packages", pattern)
            )
            if not found:
                raise Failed(
                    "no installed package and no wheel has %s; ASSETS in manage.py must follow the new layout"
                    % pattern
                )
            os.makedirs(os.path.join(new, folder), exist_ok=True)
            for path in found:
                shutil.copy(path, os.path.join(new, folder))
        write_text(os.path.join(new, "unpacked"), wanted)
        shutil.rmtree(VENDOR, ignore_errors=True)
        os.makedirs(os.path.dirname(VENDOR), exist_ok=True)
        os.rename(new, VENDOR)


def read_stamp():
    try:
        return json.loads(read_text(STAMP))
    except (OSError, ValueError):
        return {}


def file_hash(*names):
    digest = hashlib.sha256()
    for name in names:
        digest.update(read_text(os.path.join(ROOT, name)).encode())
    return digest.hexdigest()


def read_text(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)


def pip(*arguments, failure):
    command(PYTHON, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments, failure=failure)


def command(*words, failure):
    """Run a command whose own messages people see; Failed where it ends badly."""
    if subprocess.call(words, cwd=ROOT) != 0:
        raise Failed(failure + "; its own message stands above")


# --- test, check, bench, faults -------------------------------------------------------------------------------------------------


def test(arguments):
    setup(tools=True)
    return subprocess.call([PYTHON, "-m", "pytest"] + arguments)


def check(_arguments):
    """Run all checks, also after one that failed, and say at the end which did."""
    setup(tools=True)
    checks = (("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",), ("pytest",))
    failed = [" ".join(words) for words in checks if subprocess.call([PYTHON, "-m"] + list(words)) != 0]
    print("check: " + ("failed: " + ", ".join(failed) if failed else "all passed"), flush=True)
    return len(failed)


def bench(arguments):
    """List the benches, or run the named one: bench/NAME.py."""
    files = {os.path.basename(path)[:-3]: path for path in sorted(glob.glob(os.path.join("bench", "*.py")))}
    benches = {name: path for name, path in files.items() if name not in NO_BENCHES}
    if not benches:
        raise Failed("bench/ holds no bench yet")
    if not arguments:
        print('make bench ARGS="NAME [OPTIONS]", where NAME is one of:')
        for name, path in benches.items():
            print("  %-14s %s" % (name, first_line(path)))
        return 0
    if arguments[0] not in benches:
        raise Failed("there is no bench %r, only %s" % (arguments[0], ", ".join(benches)))
    setup(tools=True)
    return subprocess.call([PYTHON, benches[arguments[0]]] + arguments[1:])


def first_line(path):
    """Return the first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(read_text(path))) or "").split("\n")[0]


def faults(arguments):
    """Run the fault harness, bench/faults/__main__.py."""
    harness = os.path.join("bench", "faults")
    if not os.path.exists(os.path.join(harness, "__main__.py")):
        raise Failed("bench/faults/ holds no fault harness yet")
    setup(tools=True)
    return subprocess.call([PYTHON, harness] + arguments)


# --- run ------------------------------------------------------------------------------------------------------------------------


def run(_arguments):
    """Start console, workers and demo executor, say where and how to log in, and stop all three in order."""
    setup()
    settings = ask_config()
    executor_port = whole_number("XXL_JOB_EXECUTOR_PORT", 9999)
    require_free("XXL_JOB_PORT", settings["host"], settings["port"])
    require_free("XXL_JOB_EXECUTOR_PORT", "127.0.0.1", executor_port)
    local = "127.0.0.1" if settings["host"] in ("0.0.0.0", "::", "localhost") else settings["host"]
    address = "http://%s:%d%s" % (
        "[%s]" % local if ":" in local else local,
        settings["port"],
        settings["path"],
    )
    demo = [
        "executor_client",
        "executor_client.demo",
        "--admin",
        address,
        "--appname",
        DEMO_APPNAME,
        "--port",
        str(executor_port),
    ]
    parts = Parts(os.path.join(settings["home"], "logs"))
    try:
        parts.once("schema", [PYTHON, "-m", "flask", "--app", "wsgi", "db", "upgrade"])
        parts.start("console", [PYTHON, "wsgi.py"])
        parts.start("workers", [PYTHON, "-m", "workers"])
        parts.wait("console", lambda: answers(address + "/health"))
        parts.start("executor", [PYTHON, "-m"] + demo, XXL_JOB_ACCESS_TOKEN=settings["token"])
        parts.wait("executor", lambda: listens("127.0.0.1", executor_port))
        # last: a first run that finds no executor would fail
        parts.once("demo job", [PYTHON, "-m", "flask", "--app", "wsgi", "seed-demo"])
        if not parts.stops:
            welcome(address, settings)
        parts.watch()
    finally:
        parts.stop()


def ask_config():
    asked = subprocess.run(
        [PYTHON, "-c", ASK_CONFIG], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True
    )
    if asked.returncode != 0:
        raise Failed(asked.stderr.strip().split("\n")[-1])
    return json.loads(asked.stdout)


def whole_number(variable, default):
    text = os.environ.get(variable) or str(default)
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise Failed("%s=%r: a whole number from 1 to 65535 is needed" % (variable, text))
    return int(text)


def require_free(variable, host, port):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as exc:
            raise Failed(
                "port %d on %s cannot be used (%s); name another one: %s=..."
                % (port, host, exc.strerror, variable)
            ) from exc


def answers(url):
    """Whether the console answers there, be it that something is not well yet."""
    try:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=2).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def listens(host, port):
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def welcome(address, settings):
    stored = os.path.join(settings["home"], "admin_password")
    if settings["given"]:
        password, where = "the one in XXL_JOB_ADMIN_PASSWORD", "nowhere by this program"
    elif os.path.exists(stored):
        password, where = read_text(stored).strip(), "%s, until you change it" % shown(stored)
    else:
        password, where = "(was changed; the first one is forgotten)", "only as a hash, in the database"
    print()
    print("open            %s/" % address)
    print("user            admin")
    print("admin password: %s" % password)
    print("stored in       %s" % where)
    print(
        "then            log in, choose a password of your own, run a demo job once from its menu and watch its log"
    )
    print("stop            Ctrl-C", flush=True)


def shown(path):
    """Return a path as people in this folder would type it."""
    return os.path.relpath(path, ROOT) if path.startswith(ROOT + os.sep) else path


class Parts:
    """The processes of ``run``, in the order they were started; each writes to its own log file."""

    def __init__(self, logs):
        self.logs = logs
        self.processes = {}
        #: how often a stop was asked for: the second time kills
        self.stops = 0
        os.makedirs(logs, exist_ok=True)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.ask_stop)

    def ask_stop(self, _number, _frame):
        self.stops += 1

    def log_path(self, name):
        return os.path.join(self.logs, name.replace(" ", "_") + ".log")

    def start(self, name, words, **environ):
        """Start a part in a session of its own, so that Ctrl-C reaches only this process, which stops the parts in order."""
        if self.stops:
            return
        path = self.log_path(name)
        if os.path.exists(path):
            os.replace(path, path + ".1")
        with open(path, "wb") as log:
            self.processes[name] = subprocess.Popen(
                words,
                cwd=ROOT,
                env=dict(os.environ, PYTHONUNBUFFERED="1", **environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        print("%-15s %s" % (name, shown(path)), flush=True)

    def once(self, name, words):
        """Run a part to its end."""
        self.start(name, words)
        if self.stops:
            return
        code = self.processes[name].wait()
        del self.processes[name]
        if code != 0:
            raise Failed(self.account(name, "failed"))

    def wait(self, name, ready):
        """Wait until a part answers."""
        deadline = time.monotonic() + START_S
        while not self.stops and not ready():
            self.require_alive()
            if time.monotonic() > deadline:
                raise Failed(self.account(name, "did not answer within %d s" % START_S))
            time.sleep(0.1)

    def watch(self):
        """Return when a stop is asked for; Failed when a part ends by itself."""
        while not self.stops:
            self.require_alive()
            time.sleep(0.2)

    def require_alive(self):
        for name, process in self.processes.items():
            code = process.poll()
            if code is not None:
                how = "was ended by signal %d" % -code if code < 0 else "ended with exit code %d" % code
                raise Failed(self.account(name, how))

    def account(self, name, what):
        """Say what became of a part, with the last lines it wrote."""
        path = self.log_path(name)
        with open(path, encoding="utf-8", errors="replace") as log:
            last = (log.read().strip() or "(it wrote nothing)").split("\n")[-LAST_LINES:]
        return "%s %s; the end of %s:\n%s" % (
            name,
            what,
            shown(path),
            "\n".join("  " + line for line in last),
        )

    def stop(self):
        """Stop the parts, the last started first, each with its own time to finish; a second Ctrl-C kills."""
        asked_before = max(self.stops, 1)
        if self.processes and self.stops:
            print("\nStopping (Ctrl-C again kills) ...", flush=True)
        for name in reversed(list(self.processes)):
            process = self.processes[name]
            if process.poll() is None:
                process.terminate()
            deadline = time.monotonic() + STOP_S
            while process.poll() is None and self.stops <= asked_before and time.monotonic() < deadline:
                time.sleep(0.05)
            if process.poll() is None:
                print("%s did not end by itself and was killed" % name, flush=True)
            kill_group(process)
        if self.stops:
            print("Stopped.", flush=True)


def end_with_parent():
    """In a part, before it begins: be told to stop when this process dies without a word (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def kill_group(process):
    """Kill what is left of a part and of what it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


if __name__ == "__main__":
    sys.exit(main())
