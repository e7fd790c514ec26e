/* Live parts: reloads the page periodically and replaces the marked parts. Can be paused.
   X-Refresh: auto marks requests the user did not make, which do not keep the login. */
"use strict";

(function () {
  const PERIOD_S = 15;
  const tools = document.querySelector("[data-live-tools]");
  if (!tools) return;
  const age = tools.querySelector("[data-live-age]");
  const button = tools.querySelector("[data-live-pause]");
  let seconds = 0;
  let paused = false;

  async function refresh(headers) {
    const answer = await fetch(window.location.href, { headers: { Accept: "text/html", ...headers } });
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const fresh = page.querySelector(`[data-live="${part.dataset.live}"]`);
      if (fresh && !part.contains(document.activeElement)) part.replaceChildren(...document.adoptNode(fresh).childNodes);
    }
    seconds = 0;
    document.dispatchEvent(new Event("live-refreshed"));
  }

  function tick() {
    if (paused || document.hidden) return;
    seconds += 1;
    age.textContent = age.dataset.liveAge.replace("#", seconds);
    if (seconds % PERIOD_S === 0) refresh({ "X-Refresh": "auto" }).catch(() => {});
  }

  button.addEventListener("click", () => {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
    button.querySelector("span").textContent = paused ? button.dataset.liveResume : button.dataset.livePause;
    button.querySelector("i").className = paused ? "bi bi-play-fill" : "bi bi-pause-fill";
    if (!paused) refresh().catch(() => {});
  });
  tools.hidden = false;
  window.setInterval(tick, 1000);
})();
