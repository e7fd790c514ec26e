"""Open pages of a browser, each used again by the next test: a new page is a new process with cold caches."""

from collections import defaultdict

from playwright.sync_api import Browser, Page, ViewportSize

from tests.support.browser import DESKTOP


class KeptPages:
    """Clean pages, by the options of their contexts."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser, self._url = browser, url
        self._free: defaultdict[str, list[Page]] = defaultdict(list)
        self._own: set[Page] = set()

    def take(self, options: dict[str, object], *, own: bool = False) -> Page:
        """Return a clean page; ``options``: of its context; ``own``: a new page, closed by ``give_back``."""
        free = self._free[_key(options)]
        if free and not own:
            page = free.pop()
            viewport: ViewportSize = options.get("viewport", DESKTOP)  # type: ignore[assignment]
            if page.viewport_size != viewport:
                page.set_viewport_size(viewport)
            return page
        page = self._browser.new_context(**options).new_page()  # type: ignore[arg-type]
        if own:
            self._own.add(page)
        return page

    def give_back(self, page: Page, options: dict[str, object]) -> None:
        """Clean a page for the next test."""
        if page in self._own:
            self._own.remove(page)
            page.context.close()
        else:
            self._clean(page)
            self._free[_key(options)].append(page)

    def _clean(self, page: Page) -> None:
        """Remove what a test may have left in the page and its profile, other than handlers and scripts."""
        context = page.context
        for other in context.pages:
            if other != page:
                other.close()
        page.unroute_all()
        # of the same site, so it stays in the process, and without scripts that could fill the storage again
        page.goto(f"{self._url}/static/img/mark.svg")
        page.evaluate("localStorage.clear(); sessionStorage.clear()")
        page.mouse.move(-1, -1)
        context.clear_cookies()
        context.clear_permissions()


def _key(options: dict[str, object]) -> str:
    """Return what distinguishes contexts: all options but the size of the window, which each test sets."""
    return repr(sorted((name, value) for name, value in options.items() if name != "viewport"))
