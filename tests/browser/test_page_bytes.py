"""Bytes of a first visit: each page with its style sheet, font and scripts, as sent; without browser."""

import re
from collections.abc import Callable
from html import unescape
from urllib.parse import urljoin

import pytest
import requests

from tests.browser.screenshots import pages
from tests.browser.seed import ADMIN
from tests.browser.serving import Console

pytestmark = pytest.mark.browser

#: of a page with all its files; of the page of the dashboard alone; of what one refresh of it sends
VISIT_MAX, DASHBOARD_MAX, REFRESH_MAX = 250_000, 15_000, 5_000
LINKED = re.compile(r'<(?:link rel="(?:stylesheet|icon)"|script)[^>]*(?:href|src)="([^"]+)"')
IMPORTED = re.compile(r'^\s*(?:import|export)\b[^;]*?["\'](\.[^"\']+)["\']', re.MULTILINE)
#: minified modules: `import{a}from"./b.js"`, but not `import("./b.js")`, which is loaded when it is needed
MINIFIED = re.compile(r'\b(?:import|from)"(\.[^"]+)"')
#: files that a style sheet loads; its pictures are data: addresses
STYLED = re.compile(r'url\("?(\.[^")]+)"?\)')

Get = Callable[..., tuple[str, int]]


@pytest.fixture
def get(console: Console) -> Get:
    """Return a function that loads an address of the console: its text and the bytes sent."""
    session = requests.Session()
    user, password = ADMIN
    session.post(f"{console.url}/login", data={"userName": user, "password": password}, timeout=60)

    def load(url: str, **headers: str) -> tuple[str, int]:
        packed = {"Accept": "text/html", "Accept-Encoding": "gzip"} | headers
        with session.get(url, headers=packed, timeout=60, stream=True) as answer:
            assert answer.status_code in (200, 204, 404), url
            return answer.text, answer.raw.tell()

    return load


def visit(get: Get, url: str, files: dict[str, tuple[str, int]]) -> dict[str, int]:
    """Return the bytes of a page and of each file it loads; ``files`` keeps the files of other visits."""
    text, size = get(url)
    linked = [urljoin(url, unescape(each)) for each in LINKED.findall(text)]
    return {"page": size} | _modules(get, linked, files)


def _modules(get: Get, first: list[str], files: dict[str, tuple[str, int]]) -> dict[str, int]:
    """Return the bytes of these files and of the modules they import."""
    sizes, waiting = dict[str, int](), list(first)
    while waiting:
        address = waiting.pop()
        if address in sizes:
            continue
        if address not in files:
            files[address] = get(address, Accept="*/*")
        text, sizes[address] = files[address]
        loaded = IMPORTED.findall(text) + MINIFIED.findall(text) if address.endswith(".js") else []
        loaded += STYLED.findall(text) if address.endswith(".css") else []
        waiting += [urljoin(address, each) for each in loaded]
    return sizes


def test_a_first_visit_of_any_page_is_small(console: Console, get: Get) -> None:
    files: dict[str, tuple[str, int]] = {}
    visits = {name: visit(get, console.url + path, files) for name, path in pages(console).items()}
    assert all(len(sizes) > 9 for sizes in visits.values()), "files of a page are not found"
    sums = {name: sum(sizes.values()) for name, sizes in visits.items()}
    assert {name: size for name, size in sums.items() if size > VISIT_MAX} == {}
    assert visits["dashboard"]["page"] < DASHBOARD_MAX


def test_the_editor_is_small_in_every_language(console: Console, get: Get) -> None:
    """It is loaded after the page of a GLUE job, and the modules of the job's language after it."""
    page, _size = get(console.url + pages(console)["glue"])
    (script,) = re.findall(r'src="([^"]+glue-editor[^"]+)"', page)
    text, _size = get(urljoin(console.url, script), Accept="*/*")
    (module,) = re.findall(r'import\("([^"]+)"\)', text)
    (modes_script,) = (urljoin(urljoin(console.url, script), each) for each in IMPORTED.findall(text))
    modes, _size = get(modes_script, Accept="*/*")
    files: dict[str, tuple[str, int]] = {}
    editor = _modules(get, [urljoin(urljoin(console.url, script), module)], files)
    (bundle,) = (address for address in editor if "/index-" in address)
    sums = {}
    for language in ("Java", "Shell", "Python", "PHP", "JavaScript", "PowerShell"):
        own = re.findall(rf'{language}: [^"]*?import\("([^"]+)"\)', modes)
        listed = re.findall(rf'name:"{language}"[^{{}}]*?import\("([^"]+)"\)', files[bundle][0])
        address = urljoin(modes_script, own[0]) if own else urljoin(bundle, listed[0])
        sums[language] = sum((editor | _modules(get, [address], files)).values())
    page_files = visit(get, console.url + pages(console)["glue"], files)
    of_page = sum(size for address, size in page_files.items() if not address.endswith(".woff2"))
    too_large = {language: size + of_page for language, size in sums.items() if size + of_page > VISIT_MAX}
    assert too_large == {}, "the page of a GLUE job, but for the font of all pages"


def test_a_refresh_of_the_dashboard_is_small(console: Console, get: Get) -> None:
    page, _size = get(console.url + "/")
    held = "".join(re.findall(r'data-hash="([\w-]+)"', page))
    _parts, size = get(console.url + "/", **{"X-Parts": held, "X-Refresh": "auto"})
    assert size < REFRESH_MAX
