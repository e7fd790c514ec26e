/* A task in progress: fetches the page again and again, and loads it anew once the task has ended. */
"use strict";

(function () {
  const FIRST_MS = 250;
  const LONGEST_MS = 2000;
  const part = document.querySelector("[data-task]");
  if (!part) return;
  let wait = FIRST_MS;

  async function refresh() {
    const answer = await fetch(window.location.href, { headers: { Accept: "text/html", "X-Refresh": "auto" } });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("[data-task]");
    if (fresh) part.replaceChildren(...document.adoptNode(fresh).childNodes);
    else window.location.reload();
  }

  async function poll() {
    if (!document.hidden) await refresh().catch(() => {});
    wait = Math.min(wait * 1.5, LONGEST_MS);
    window.setTimeout(poll, wait);
  }

  window.setTimeout(poll, wait);
})();
