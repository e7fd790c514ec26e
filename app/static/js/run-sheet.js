/* Run once: sends the form, waits for the run it makes, and shows that run live in the form's dialog. */
import { openLog } from "./log-view.js";
import { start as startPreview } from "./parameter-preview.js";
import { start as startParameters } from "./parameters.js";

const FIRST_MS = 250;
const LONGEST_MS = 2000;
const FAILURES_MAX = 20;

async function read(answer) {
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return { page, body: page.querySelector("[data-run-body]"), href: answer.url };
}

/* Ids of the page below must stay unique: its labels and links refer to them. */
function dropKnownIds(body) {
  for (const part of body.querySelectorAll("[id]")) {
    if (document.getElementById(part.id)) part.removeAttribute("id");
  }
}

/* Posts the form; calls show({page, body, href}) for the waiting run while it changes, and for the run in the end.
   Throws if the request was refused; `refused` is the page at `href` that says why, such as that of the login.
   Without an answer of the console the run may be queued all the same: the form sent again leads to it. */
export async function runOnce(form, show) {
  const answer = await fetch(form.action, {
    method: "POST",
    body: new URLSearchParams(new FormData(form)),
    headers: { Accept: "text/html" },
  });
  let found = await read(answer);
  if (!answer.ok || !found.body) {
    throw Object.assign(new Error(String(answer.status)), { refused: found.page, href: found.href, status: answer.status });
  }
  let wait = FIRST_MS;
  let failures = 0;
  while (found.body.hasAttribute("data-queued")) {
    show(found);
    await new Promise((resolve) => window.setTimeout(resolve, wait));
    wait = Math.min(wait * 1.5, LONGEST_MS);
    if (!form.isConnected && !document.querySelector("[data-run-place]")) return;
    try {
      found = await poll(found);
      failures = 0;
    } catch (error) {
      failures += 1;
      if (failures >= FAILURES_MAX) throw error;
    }
  }
  show(found);
}

async function poll(found) {
  const answer = await fetch(found.href, { headers: { Accept: "text/html", "X-Refresh": "auto" } });
  const next = await read(answer);
  if (!answer.ok || !next.body) throw new Error(String(answer.status));
  return next;
}

/* Puts a run into `place` and follows its log. */
export function fill(place, { body, href }) {
  const own = document.adoptNode(body);
  dropKnownIds(own);
  place.dataset.runPlace = "";
  place.replaceChildren(own);
  openLog(place);
  return href;
}

/* Says in `note` why a request was refused, as that page does; otherwise with a text of the form. */
export function explain(note, error, { textFailed, textUnknown }) {
  const page = error.refused;
  const wrong = page ? Array.from(page.querySelectorAll("[data-dialog-body] .invalid-feedback, [data-error] p:first-of-type, [data-login-ended]")) : [];
  const isRefused = error.status < 500;
  note.textContent = wrong.map((part) => part.textContent.trim()).join(" ") || (isRefused ? textFailed : textUnknown);
  const login = page && page.querySelector("[data-login-ended]");
  if (!login) return;
  const link = document.createElement("a");
  link.href = error.href;
  link.textContent = login.dataset.loginEnded;
  note.append(" ", link);
}

function refuse(form, error) {
  const said = error.refused && error.refused.querySelector("[data-dialog-body] form");
  if (said) {
    form.replaceChildren(...document.adoptNode(said).childNodes);
    startParameters(form);
    startPreview(form);
    return;
  }
  for (const button of form.querySelectorAll("button")) button.disabled = false;
  form.querySelector(":scope > p[role=alert]")?.remove();
  const note = document.createElement("p");
  note.setAttribute("role", "alert");
  note.className = "text-danger";
  explain(note, error, form.dataset);
  form.append(note);
}

/* For a form in a dialog of js/app.js, which has disabled its buttons. */
export async function run(form) {
  const sheet = form.closest("dialog");
  const place = form.closest("[data-dialog-body]");
  const link = document.createElement("a");
  link.className = "btn btn-sm btn-default";
  link.textContent = form.dataset.textOpen;
  try {
    await runOnce(form, (found) => {
      const heading = found.page.querySelector("h1");
      const title = heading ? heading.textContent.replace(/\s+/g, " ").trim() : "";
      sheet.classList.add("run");
      sheet.setAttribute("aria-label", title);
      sheet.querySelector(".sheet-head strong").textContent = title;
      link.href = fill(place, found);
      if (!link.isConnected) sheet.querySelector(".sheet-head .btn-close").before(link);
      const view = place.querySelector("[data-lines]");
      if (!sheet.contains(document.activeElement) || document.activeElement === document.body) {
        (view || sheet.querySelector(".btn-close")).focus();
      }
    });
  } catch (error) {
    if (form.isConnected) refuse(form, error);
  }
}
