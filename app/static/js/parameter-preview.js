/* Preview of a parameter with placeholders: fetched anew while the form around it is edited; the input is marked if
   it is wrong. Without an answer the preview goes: what it showed may not hold any more. */

const PAUSE_MS = 300;

export function start(root) {
  for (const place of root.querySelectorAll("[data-parameter-preview]")) {
    if ("started" in place.dataset) continue;
    place.dataset.started = "";
    follow(place);
  }
}

function follow(place) {
  const form = place.closest("form");
  let timer = 0;
  let number = 0;

  async function renew() {
    const box = form.elements.fill_parameter;
    const own = ++number;
    let markup = "";
    if (!box || box.checked) {
      const body = new URLSearchParams(new FormData(form));
      const headers = { "HX-Request": "true", Accept: "text/html" };
      const answer = await fetch(place.dataset.address, { method: "POST", body, headers }).catch(() => null);
      if (own !== number) return; /* a later one is on its way */
      markup = answer && answer.ok ? await answer.text() : "";
    }
    const isOpen = place.querySelector("details[open]") !== null;
    place.innerHTML = markup;
    const names = place.querySelector("details");
    if (names) names.open = isOpen;
    mark();
  }

  function mark() {
    const field = form.elements.executor_param;
    const isWrong = place.querySelector(".preview.bad") !== null;
    const hasError = form.querySelector(`[id="${field.id}-error"]`) !== null;
    field.classList.toggle("is-invalid", isWrong || hasError);
    field.setAttribute("aria-invalid", String(isWrong || hasError));
    const others = (field.getAttribute("aria-describedby") || "").split(" ").filter((id) => id && id !== place.id);
    field.setAttribute("aria-describedby", [...others, ...(isWrong ? [place.id] : [])].join(" "));
  }

  function later() {
    if (!place.isConnected) return;
    window.clearTimeout(timer);
    timer = window.setTimeout(renew, PAUSE_MS);
  }

  for (const name of ["input", "change"]) form.addEventListener(name, later);
  form.addEventListener("click", (event) => event.target.closest("[data-fill], [data-parameter-switch]") && later());
}

start(document);
