/* Rolling log: polls for new lines until the run has a result and no more lines arrive. */
import { LogSearch } from "./log-search.js";
import { makeLine } from "./log-line.js";

const POLL_MS = 2000;
const RETRY_MS = 5000;
const FAILURES_MAX = 20;
/* maximum lines in the page; the raw text has all of them */
const KEPT_MAX = 5000;
const NEAR_END_PX = 40;
const SAID_MS = 2000;

const view = document.querySelector("[data-lines]");
const tools = document.querySelector("[data-log-tools]");
const status = document.querySelector("[data-log-status]");
const labels = view ? view.dataset : {};

function tool(name) {
  return tools.querySelector(`[data-${name}]`);
}

/* When the run ends, reload the page and replace the parts that changed. */
async function refreshFacts() {
  if (!document.querySelector("[data-facts]")) return;
  const answer = await fetch(window.location.pathname, { headers: { Accept: "text/html", "X-Refresh": "auto" } });
  if (!answer.ok || answer.redirected) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of ["[data-facts]", "[data-trace]", "[data-run-state]"]) {
    const now = document.querySelector(part);
    const then = page.querySelector(part);
    if (now && then) now.replaceWith(document.adoptNode(then));
  }
  document.querySelectorAll("[data-while-running]").forEach((button) => button.remove());
}

/* Elapsed time of a running run: 0:07, 12:34, 1:02:03. */
function countUp() {
  const place = document.querySelector("[data-elapsed]");
  if (!place) return;
  const began = Date.now() - Number(place.dataset.elapsed);
  const two = (number) => String(number).padStart(2, "0");
  const show = () => {
    const seconds = Math.max(0, Math.floor((Date.now() - began) / 1000));
    const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
    place.textContent = `${hours ? `${hours}:${two(minutes)}` : minutes}:${two(seconds % 60)}`;
    if (!place.isConnected) window.clearInterval(timer);
  };
  const timer = window.setInterval(show, 1000);
  show();
}

function start() {
  const search = new LogSearch(view, tool("find"), tool("found"));
  const follow = tool("follow");
  const copyWord = tool("copy-log").querySelector("span");
  const copyLabel = copyWord.textContent;
  let copied;
  let lines = "";
  let next = 1;
  let failures = 0;
  let cut = false;
  /* incremented for each opened log, which ends the polling of the previous one */
  let turn = 0;

  function showState(text) {
    status.textContent = cut ? `${text} ${labels.textCut}` : text;
  }

  function addLines(first, texts) {
    const rows = document.createDocumentFragment();
    texts.forEach((text, index) => rows.append(makeLine(first + index, text, labels.textLine)));
    view.append(rows);
    while (view.childElementCount > KEPT_MAX) {
      view.firstElementChild.remove();
      cut = true;
    }
    if (follow.checked) view.scrollTop = view.scrollHeight;
    try {
      search.refresh();
    } catch {
      /* errors of the search must not stop the log */
    }
  }

  function reveal(row) {
    follow.checked = false;
    row.scrollIntoView({ block: "center" });
  }

  function showLinkedLine() {
    const row = window.location.hash.startsWith("#L") ? document.getElementById(window.location.hash.slice(1)) : null;
    if (row) reveal(row);
  }

  function notifyEnd() {
    const asked = tools.querySelector("[data-notify]");
    if (asked && asked.checked && document.hidden) new Notification(labels.textEnd, { body: document.title, tag: lines });
  }

  function finish(hadEnded) {
    if (next === 1) showState(labels.textNothing);
    else showState(hadEnded ? labels.textLoaded : labels.textEnd);
    if (hadEnded) return;
    notifyEnd();
    refreshFacts();
    document.dispatchEvent(new Event("log-ended"));
  }

  async function ask() {
    const answer = await fetch(`${lines}?from=${next}`, { headers: { Accept: "application/json", "X-Refresh": "auto" } });
    if (answer.redirected) {
      window.location.reload();
      return null;
    }
    if (!answer.ok) {
      const { error } = await answer.json().catch(() => ({}));
      throw new Error(error || String(answer.status));
    }
    const part = await answer.json();
    if (part.error) throw new Error(part.error);
    return part;
  }

  function retry(error, rounds, own) {
    failures += 1;
    const why = error.message && !/^\d+$/.test(error.message) ? ` (${error.message})` : "";
    if (failures >= FAILURES_MAX) {
      showState(labels.textGivenUp + why);
      return;
    }
    showState(labels.textUnreachable + why);
    window.setTimeout(step, RETRY_MS, rounds, own);
  }

  async function step(rounds, own) {
    if (own !== turn) return;
    let part;
    try {
      part = await ask();
    } catch (error) {
      if (own === turn) retry(error, rounds, own);
      return;
    }
    if (!part || own !== turn) return;
    failures = 0;
    if (part.lines.length) {
      addLines(part.from, part.lines);
      next = part.to + 1;
    }
    if (rounds === 0 || (part.lines.length && window.location.hash)) showLinkedLine();
    /* announce new lines only */
    view.setAttribute("aria-live", rounds > 0 && follow.checked ? "polite" : "off");
    if (part.end) {
      finish(rounds <= 1);
      return;
    }
    showState(part.note ? `${labels.textWaiting} (${part.note})` : labels.textWaiting);
    window.setTimeout(step, part.lines.length ? POLL_MS / 4 : POLL_MS, rounds + 1, own);
  }

  function open(href) {
    lines = href;
    [next, failures, cut] = [1, 0, false];
    turn += 1;
    view.replaceChildren();
    showState(labels.textWaiting);
    step(0, turn);
  }

  async function copy() {
    const isBare = view.classList.contains("no-stamps");
    const texts = Array.from(view.children, (row) => {
      const body = row.lastElementChild;
      const stamp = isBare ? body.querySelector(".stamp") : null;
      return stamp ? body.textContent.slice(stamp.textContent.length) : body.textContent;
    });
    await navigator.clipboard.writeText(texts.map((text) => `${text}\n`).join(""));
    copyWord.textContent = labels.textCopied;
    window.clearTimeout(copied);
    copied = window.setTimeout(() => (copyWord.textContent = copyLabel), SAID_MS);
  }

  view.addEventListener("scroll", () => {
    const atEnd = view.scrollHeight - view.scrollTop - view.clientHeight < NEAR_END_PX;
    if (!atEnd) follow.checked = false;
    else if (view.scrollTop > 0) follow.checked = true;
  });
  follow.addEventListener("change", () => {
    if (follow.checked) view.scrollTop = view.scrollHeight;
  });
  tool("wrap").addEventListener("change", (event) => view.classList.toggle("no-wrap", !event.target.checked));
  tool("stamps").addEventListener("change", (event) => view.classList.toggle("no-stamps", !event.target.checked));
  tool("copy-log").addEventListener("click", () => copy().catch(() => {}));
  tools.addEventListener("log-reveal", (event) => reveal(event.detail));
  window.addEventListener("hashchange", showLinkedLine);
  document.addEventListener("log-open", (event) => open(event.detail));
  if (labels.lines) open(labels.lines);
}

/* Check box: browser notification when the run ends in the background. */
function offerNotification() {
  const box = tools.querySelector("[data-notify]");
  if (!box || !("Notification" in window) || Notification.permission === "denied") return;
  box.closest("label").hidden = false;
  box.addEventListener("change", async () => {
    if (box.checked && (await Notification.requestPermission()) !== "granted") box.checked = false;
  });
}

if (view) {
  start();
  countUp();
  offerNotification();
}
