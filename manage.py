#!/usr/bin/env python3
"""Set up, run and check the program: ``python3 manage.py COMMAND [ARGUMENTS]``, or ``make COMMAND ARGS="…"``.

setup         create .venv with requirements and duetime, unpack browser assets and data, compile the texts
run           setup, then console, workers and a demo executor until Ctrl-C
test          setup with the test tools, then pytest with the arguments; without these, no long tests
test-all      the same with long and extensive tests, and all tests on every kind of database
check         ruff, mypy, pytest, bandit, pip-audit, subjects of commits; must pass on every commit
bench         run the named benchmark; without a name, list them
faults        run the fault harness; ARGS: scenario names, or `all`
lock          write requirements*.txt from requirements*.in; ARGS: --upgrade, or --upgrade-package NAME
translations  extract the texts and update both catalogues; ARGS: check, or compile
reference     write docs/reference/api.md from the schemas of the API, and cli.md from the commands
pictures      take screenshots of the pages into build/pictures; ARGS: --docs for those of docs/img, --help
dist          build the source release and the wheel of the server into build/dist

Standard library only, and only syntax of Python 3.6: an old interpreter must be able to read this file to
report that it is too old.
"""

import ast
import glob
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
#: files of the program
PROGRAM = ("app", "workers", "executor_client", "migrations", "wsgi.py", "manage.py")
#: two workers a processor, at most 8; an idle one takes over tests of another
PYTEST = ("pytest", "-n", "logical", "--maxprocesses", "8", "--dist", "worksteal")
#: contents of .venv: its root folder, and the hash of each installed requirements file
STAMP = os.path.join(VENV, "installed.json")
VENDOR = os.path.join(ROOT, "app", "static", "vendor")
VENDOR_STAMP = os.path.join(VENDOR, "unpacked")
DATA = os.path.join(ROOT, "app", "data")
#: the oldest version the program runs on; the locks are resolved for it
OLDEST_PYTHON = "3.11"
#: programs, and the module whose main() they call
PROGRAMS = (
    ("duetime", "app.__main__"),
    ("xxl", "app.__main__"),
    ("xxl-job-console", "wsgi"),
    ("xxl-job-workers", "workers.__main__"),
)
#: characters of a path in the first line of a program that every kernel takes
LONGEST_INTERPRETER = 120
#: interpreters searched for on PATH if this one is too old
NEWER_PYTHONS = ("python3.11", "python3.12", "python3.13")
#: browser assets: folder under vendor/, and path in a wheel of requirements-assets.txt
ASSETS = (
    ("bootstrap", "flask_bootstrap/static/bootstrap5/css/bootstrap.min.css"),
    ("bootstrap-icons", "flask_bootstrap/static/bootstrap5/icons/bootstrap-icons.svg"),
    ("htmx", "django_htmx/static/django_htmx/htmx-2.min.js"),
    ("codemirror", "nicegui/elements/codemirror/dist/*.js"),
)
#: files of the program that are not served: folder under data/, and path in a wheel
DATA_FILES = (("", "django/contrib/auth/common-passwords.txt.gz"),)
TRANSLATIONS = os.path.join("app", "translations")
#: functions that mark a text, besides gettext and ngettext
KEYWORDS = ("_l", "N_", "lazy_gettext", "lazy_pgettext:1c,2")
#: modules of bench/ that are not benchmarks
NO_BENCHES = (
    *("charts", "harness", "page_addresses", "page_rows", "rates", "stub_executor", "windows", "yardstick"),
)


class Failed(Exception):
    """A command failed; the text is the one line shown."""


def main():
    os.chdir(ROOT)
    require_python()
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        print(__doc__.strip())
        return 0 if sys.argv[1:] in ([], ["help"], ["--help"], ["-h"]) else 2
    try:
        return COMMANDS[sys.argv[1]](sys.argv[2:]) or 0
    except Failed as exc:
        print("error: " + str(exc), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130


def require_python():
    """Restart with a newer interpreter if this one is too old; exit with one line if there is none."""
    if sys.version_info >= tuple(int(part) for part in OLDEST_PYTHON.split(".")):
        return
    for name in NEWER_PYTHONS:
        newer = shutil.which(name)
        if newer:
            os.execv(newer, [newer, os.path.join(ROOT, "manage.py")] + sys.argv[1:])
    needed = "Python %s or newer is needed, this is %d.%d" % ((OLDEST_PYTHON,) + tuple(sys.version_info[:2]))
    sys.exit("%s (and none of %s is on PATH)" % (needed, ", ".join(NEWER_PYTHONS)))


# --- setup -------------------------------------------------------------------------------------------------


def setup(_arguments=(), tools=False):
    """Bring .venv, the browser assets and the translations up to date; quick if they already are."""
    if not os.access(ROOT, os.W_OK):
        raise Failed("%s is not writable; .venv and other files are created there" % ROOT)
    make_venv()
    install("requirements.txt", covered_by="requirements-dev.txt")
    if tools:
        install("requirements-dev.txt")
    link_programs()
    unpack_assets()
    compile_translations()


def make_venv():
    """Create .venv; again if it is broken, or was moved (its scripts contain the folder)."""
    moved = read_stamp().get("root", ROOT) != ROOT
    if os.path.exists(PYTHON) and not moved:
        return
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        raise Failed("the venv module is missing; on Debian and Ubuntu: apt install python3-venv")
    print("Creating .venv with Python %d.%d ..." % sys.version_info[:2], flush=True)
    command(sys.executable, "-m", "venv", "--clear", VENV, failure="creating .venv failed")


def install(requirements, covered_by=None):
    """Install a requirements file unless it, or one that contains it, is already installed."""
    stamp = read_stamp()
    hashes = {name: file_hash(name) for name in (requirements, covered_by) if name}
    if any(stamp.get(name) == text for name, text in hashes.items()):
        return
    print("Installing %s ..." % requirements, flush=True)
    pip("install", "--require-hashes", "-r", requirements, failure="installing %s failed" % requirements)
    with open(STAMP, "w") as stream:
        json.dump({**stamp, "root": ROOT, requirements: hashes[requirements]}, stream)


def link_programs():
    """Write the programs of the wheel (pyproject.toml) to .venv/bin, for this folder."""
    for name, module in PROGRAMS:
        path = os.path.join(VENV, "bin", name)
        text = first_lines(PYTHON)
        text += "import sys\n\nsys.path[0] = %r\nfrom %s import main\n\n" % (ROOT, module)
        text += 'if __name__ == "__main__":\n    sys.exit(main())\n'
        if not os.path.exists(path) or read_text(path) != text:
            write_text(path, text)
            os.chmod(path, 0o755)  # nosec B103  # a program for everyone who may read .venv


def first_lines(python):
    """Return how a program names its interpreter; through a shell where the kernel does not take the path."""
    if " " in python or len(python) > LONGEST_INTERPRETER:
        return "#!/bin/sh\n'''exec' \"%s\" \"$0\" \"$@\"\n' '''\n" % python
    return "#!%s\n" % python


def unpack_assets():
    """Fill app/static/vendor/ and app/data/ from the pinned wheels, each completely or not at all."""
    stamp = "%s %r" % (file_hash("requirements-assets.txt"), ASSETS + DATA_FILES)
    if os.path.exists(VENDOR_STAMP) and os.path.isdir(DATA) and read_text(VENDOR_STAMP) == stamp:
        return
    print("Unpacking the browser assets and the list of passwords ...", flush=True)
    with tempfile.TemporaryDirectory(prefix="vendor-", dir=VENV) as work:
        options = ("--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", "requirements-assets.txt")
        pip("download", "-d", work, *options, failure="downloading the browser assets failed")
        for wheel in glob.glob(os.path.join(work, "*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(work)
        # the folder with the stamp comes last
        for folder, files in ((DATA, DATA_FILES), (VENDOR, ASSETS)):
            new = os.path.join(work, "new", os.path.basename(folder))
            for below, pattern in files:
                copy_assets(os.path.join(work, pattern), os.path.join(new, below))
            if folder == VENDOR:
                write_text(os.path.join(new, os.path.basename(VENDOR_STAMP)), stamp)
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            os.rename(new, folder)


def copy_assets(pattern, folder):
    found = glob.glob(pattern)
    if not found:
        raise Failed("no wheel contains %s; update ASSETS in manage.py" % pattern)
    os.makedirs(folder, exist_ok=True)
    for path in found:
        shutil.copy(path, folder)


def compile_translations():
    """Compile the catalogues that are newer than their compiled form."""
    for source in glob.glob(os.path.join(TRANSLATIONS, "*", "LC_MESSAGES", "messages.po")):
        compiled = source[: -len(".po")] + ".mo"
        if not os.path.exists(compiled) or os.path.getmtime(compiled) < os.path.getmtime(source):
            babel("compile", "-i", source, "-o", compiled, failure="compiling %s failed" % source)


def read_stamp():
    try:
        return json.loads(read_text(STAMP))
    except (OSError, ValueError):
        return {}


def file_hash(name):
    return hashlib.sha256(read_text(os.path.join(ROOT, name)).encode()).hexdigest()


def read_text(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)


def pip(*arguments, failure):
    command(PYTHON, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments, failure=failure)


def babel(*arguments, failure):
    command(PYTHON, "-m", "babel.messages.frontend", "--quiet", *arguments, failure=failure)


def command(*arguments, failure):
    """Run a command with its output shown; raise Failed if it fails."""
    if subprocess.call(arguments, cwd=ROOT) != 0:
        raise Failed(failure + "; see the message above")


# --- other commands ----------------------------------------------------------------------------------------


def run(arguments):
    """Replace this process by ``duetime up --demo``."""
    if arguments:
        raise Failed("run takes no arguments; set XXL_JOB_PORT and other variables instead")
    setup()
    os.execv(PYTHON, [PYTHON, "-m", "app", "up", "--demo"])


def test(arguments):
    setup(tools=True)
    return subprocess.call([PYTHON, "-m"] + list(PYTEST) + arguments)


def test_all(arguments):
    return test(["--all"] + arguments)


def check(_arguments):
    """Run all checks, even if one fails, and print at the end which failed."""
    setup(tools=True)
    checks = (("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",), PYTEST)
    failed = [" ".join(tool) for tool in checks if subprocess.call((PYTHON, "-m") + tool) != 0]
    searches = (("bandit", scan_code), ("pip-audit", audit_packages), ("subjects", check_subjects))
    failed += [name for name, passes in searches if not passes()]
    print("check: " + ("failed: " + ", ".join(failed) if failed else "all passed"), flush=True)
    return len(failed)


def scan_code():
    """Look for insecure code; exceptions are explained in pyproject.toml and beside the lines."""
    options = ("-q", "-c", "pyproject.toml", "-r") + PROGRAM
    ended = subprocess.run((PYTHON, "-m", "bandit") + options, capture_output=True, text=True)
    if ended.returncode != 0:  # otherwise its standard error has only notes about the exceptions
        print(ended.stdout + ended.stderr, flush=True)
    return ended.returncode == 0


def audit_packages():
    """Look up known vulnerabilities of the locked versions; without PyPI that is reported and passes."""
    options = ("--disable-pip", "--require-hashes", "--format", "json", "--progress-spinner", "off")
    arguments = (PYTHON, "-m", "pip_audit", "-r", "requirements-dev.txt") + options
    ended = subprocess.run(arguments, capture_output=True, text=True)
    passes, lines = read_audit(ended.stdout)
    print("\n".join(lines), flush=True)
    return passes


#: subject of a commit: what it does, to what
SUBJECT = re.compile(r"(Fix|Add|Change|Remove|Rename|Move|Speed up|Document|Test) \S")


def check_subjects():
    """Check the subjects of the commits since the one that added this check."""
    log = ("git", "log", "--no-merges")
    added = _lines_of(log + ("--format=%H", "--reverse", "-SSUBJECT = re.compile", "--", "manage.py"))
    wrong = wrong_subjects(_lines_of(log + ("--format=%s", added[0] + "..HEAD")) if added else ())
    for subject in wrong:
        print("subjects: %r is too long, or begins with no verb of CONTRIBUTING.md" % subject, flush=True)
    return not wrong


def wrong_subjects(subjects):
    """Return the subjects that do not begin with a verb of the list, or have more than 72 characters."""
    return [subject for subject in subjects if len(subject) > 72 or not SUBJECT.match(subject)]


def _lines_of(command):
    """Return the output of git; nothing outside of a repository or without git."""
    try:
        ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return []
    return ended.stdout.decode("utf-8", "replace").splitlines()


def read_audit(report):
    """Return whether a report of pip-audit, as JSON, passes, and the lines to print."""
    try:
        packages = json.loads(report)["dependencies"]
    except (ValueError, KeyError):
        return True, ["pip-audit: not audited, PyPI is not reachable"]
    found = [
        "pip-audit: %s %s: %s, fixed in %s"
        % (package["name"], package["version"], flaw["id"], ", ".join(flaw["fix_versions"]) or "no version")
        for package in packages
        for flaw in package.get("vulns", ())
    ]
    skipped = sum("skip_reason" in package for package in packages)
    audited = "pip-audit: %d of %d packages audited" % (len(packages) - skipped, len(packages))
    return not found, found + [audited + ("; no data on the others" if skipped else "")]


def bench(arguments):
    """Run the benchmark bench/NAME.py; without a name, list them."""
    files = {os.path.basename(path)[:-3]: path for path in sorted(glob.glob(os.path.join("bench", "*.py")))}
    benches = {name: path for name, path in files.items() if name not in NO_BENCHES}
    if not arguments:
        print('make bench ARGS="NAME [OPTIONS]", where NAME is one of:')
        for name, path in benches.items():
            print("  %-14s %s" % (name, first_line(path)))
        return 0
    if arguments[0] not in benches:
        raise Failed("unknown benchmark %r; choose from %s" % (arguments[0], ", ".join(benches)))
    setup(tools=True)
    return subprocess.call([PYTHON, benches[arguments[0]]] + arguments[1:])


def first_line(path):
    """Return the first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(read_text(path))) or "").split("\n")[0]


def faults(arguments):
    """Run the fault harness, bench/faults/__main__.py."""
    setup(tools=True)
    return subprocess.call([PYTHON, os.path.join("bench", "faults")] + arguments)


def lock(arguments):
    """Resolve requirements.in, then requirements-dev.in with the same versions; keep pins unless upgraded."""
    setup(tools=True)
    options = ("--universal", "--python-version", OLDEST_PYTHON, "--generate-hashes", "--quiet")
    options += ("--custom-compile-command", "python3 manage.py lock") + tuple(arguments)
    for name, more in (("requirements", ()), ("requirements-dev", ("-c", "requirements.txt"))):
        compile_ = ("pip", "compile", name + ".in", "-o", name + ".txt") + more + options
        command(PYTHON, "-m", "uv", *compile_, failure="locking %s.in failed" % name)


def translations(arguments):
    """Extract the texts and bring the catalogues up to date; ``check`` only reports whether they are."""
    if arguments not in ([], ["check"], ["compile"]):
        raise Failed("translations: expected check, compile or nothing")
    setup()
    if arguments == ["compile"]:
        return
    with tempfile.TemporaryDirectory() as work:
        texts = os.path.join(work, "messages.pot")
        keywords = [option for name in KEYWORDS for option in ("-k", name)]
        options = ["-F", "babel.cfg", "-o", texts, "--no-location", "--sort-output"] + keywords
        babel("extract", *(options + ["."]), failure="extracting the texts failed")
        folder = TRANSLATIONS
        if arguments:  # Babel's own --check takes every text with a context for a change.
            folder = os.path.join(work, "translations")
            shutil.copytree(TRANSLATIONS, folder)
        options = [
            "-i",
            texts,
            "-d",
            folder,
            "-w",
            "120",
            "--no-fuzzy-matching",
            "--ignore-pot-creation-date",
        ]
        babel("update", *options, failure="the catalogues cannot be updated")
        for path in glob.glob(os.path.join(folder, "*", "LC_MESSAGES", "messages.po")):
            if read_text(path) != read_text(os.path.join(TRANSLATIONS, os.path.relpath(path, folder))):
                raise Failed("the catalogues are not up to date; run: python3 manage.py translations")
    compile_translations()


def pictures(arguments):
    setup(tools=True)
    return subprocess.call([PYTHON, "-m", "tests.browser.screenshots"] + arguments)


def reference(_arguments):
    """Write docs/reference/api.md from the schemas of the API, and cli.md from the commands of duetime."""
    setup(tools=True)
    pages = ("api_reference", "command_reference")
    return max(subprocess.call([PYTHON, "-m", "tests.documented." + page]) for page in pages)


def dist(_arguments):
    """Build server and client with what `setup` unpacked and compiled."""
    setup(tools=True)
    options = ("--outdir", os.path.join("build", "dist"))
    command(PYTHON, "-m", "build", "--no-isolation", *options, failure="building the server failed")
    command(
        PYTHON,
        "-m",
        "build",
        "--no-isolation",
        *options,
        "executor_client",
        failure="building the client failed",
    )
    print(
        "dist: add to pip install: --find-links %s" % os.path.abspath(os.path.join("build", "dist")),
        flush=True,
    )


COMMANDS = {
    function.__name__.replace("_", "-"): function
    for function in (
        *(setup, run, test, test_all, check, bench, faults),
        *(lock, translations, reference, pictures, dist),
    )
}

if __name__ == "__main__":
    sys.exit(main())
