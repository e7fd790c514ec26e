/* Rolling log: polls for new lines until the run has a result and no more lines arrive, and follows its state. */
import { copy } from "./copy.js";
import { levelOf } from "./log-levels.js";
import { LogSearch } from "./log-search.js";
import { ESCAPES, makeLine } from "./log-line.js";

const POLL_MS = 2000;
const RETRY_MS = 5000;
const FAILURES_MAX = 20;
/* a piece of so many characters was cut: there are more lines */
const CUT_CHARACTERS = 40000;
/* maximum lines in the page; the raw text has all of them */
const KEPT_MAX = 5000;
const NEAR_END_PX = 40;
/* statuses of the console for a run that was deleted, or that the reader may not see any more */
const GONE = [403, 404];
/* parts of the page of a run that change with its state */
const PARTS = ["[data-run-banner]", "[data-facts]"];
const STARTS = "[data-starts-errors]";

/* Elapsed time of a running run: 0:07, 12:34, 1:02:03. */
function countUp(root) {
  const began = new WeakMap();
  const two = (number) => String(number).padStart(2, "0");
  const show = () => {
    const place = root.querySelector("[data-elapsed]");
    if (!place) return;
    if (!began.has(place)) began.set(place, Date.now() - Number(place.dataset.elapsed));
    const seconds = Math.max(0, Math.floor((Date.now() - began.get(place)) / 1000));
    const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
    place.textContent = `${hours ? `${hours}:${two(minutes)}` : minutes}:${two(seconds % 60)}`;
  };
  const timer = window.setInterval(() => (root.isConnected ? show() : window.clearInterval(timer)), 1000);
  show();
}

/* Check box: browser notification when the run ends in the background. */
function offerNotification(tools) {
  const box = tools.querySelector("[data-notify]");
  if (!box || !("Notification" in window) || Notification.permission === "denied") return;
  box.closest("label").hidden = false;
  box.addEventListener("change", async () => {
    if (box.checked && (await Notification.requestPermission()) !== "granted") box.checked = false;
  });
}

/* Shows the log of the run in `root`, which has the viewer of runs/_viewer.html. */
export function openLog(root) {
  const view = root.querySelector("[data-lines]");
  /* a dialog over the page of a run loads this script twice */
  if (!view || "opened" in view.dataset) return;
  view.dataset.opened = "";
  countUp(root);
  const tools = root.querySelector("[data-log-tools]");
  const tool = (name) => tools.querySelector(`[data-${name}]`);
  const status = root.querySelector("[data-log-status]");
  const labels = view.dataset;
  const page = root.querySelector("[data-run-page]");
  const isSheet = view.closest("dialog") !== null || !page;
  const search = new LogSearch(view, tool("find"), tool("found"));
  const follow = tool("follow");
  const jump = tool("first-error");
  let next = 1;
  let failures = 0;
  let cut = false;
  let level = "";

  function showState(text) {
    status.textContent = cut ? `${text} ${labels.textCut}` : text;
  }

  /* Fetches the page of the run and replaces what changed. */
  async function refreshFacts() {
    if (!page) return;
    const answer = await fetch(page.dataset.runPage, { headers: { Accept: "text/html", "X-Refresh": "auto" } });
    if (!answer.ok || answer.redirected) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of PARTS) {
      const now = root.querySelector(part);
      const then = fresh.querySelector(part);
      if (now && then) now.replaceWith(document.adoptNode(then));
    }
  }

  /* What the handler reports with context.progress(). */
  function showProgress(progress) {
    const place = root.querySelector("[data-progress]");
    if (!place || !progress) return;
    const percent = `${progress.percent}%`;
    const bar = place.querySelector("progress");
    bar.value = progress.percent;
    bar.setAttribute("aria-valuetext", `${percent} ${progress.text}`.trim());
    place.querySelector("[data-progress-percent]").textContent = percent;
    place.querySelector("[data-progress-text]").textContent = progress.text;
    place.hidden = false;
  }

  /* An error with its stack counts once. */
  function countErrors() {
    const count = view.querySelectorAll(STARTS).length;
    jump.hidden = count === 0;
    jump.querySelector("span").textContent = labels.textErrors.replace("#", String(count));
  }

  function addLines(first, texts) {
    const rows = document.createDocumentFragment();
    texts.forEach((text, index) => {
      const before = level;
      level = levelOf(text.replace(ESCAPES, ""), before);
      const row = makeLine(first + index, text, { level, word: labels.textLine, page: isSheet && page ? page.dataset.runPage : "" });
      const isBad = level === "error" || level === "frame";
      if (isBad && before !== "error" && before !== "frame") row.dataset.startsErrors = "";
      rows.append(row);
    });
    view.append(rows);
    while (view.childElementCount > KEPT_MAX) {
      view.firstElementChild.remove();
      cut = true;
    }
    countErrors();
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

  function showFirstError() {
    const row = view.querySelector(STARTS);
    if (!row) return;
    search.mark(row);
    reveal(row);
    view.focus({ preventScroll: true });
  }

  function showLinkedLine() {
    const row = window.location.hash.startsWith("#L") ? document.getElementById(window.location.hash.slice(1)) : null;
    if (row && view.contains(row)) reveal(row);
  }

  function notifyEnd() {
    const asked = tool("notify");
    if (!asked) return;
    asked.closest("label").hidden = true;
    if (asked.checked && document.hidden) new Notification(labels.textEnd, { body: document.title, tag: labels.lines });
  }

  function finish(hadEnded) {
    if (next === 1) showState(labels.textNothing);
    else showState(hadEnded ? labels.textLoaded : labels.textEnd);
    if (hadEnded) return;
    notifyEnd();
    refreshFacts().catch(() => {});
  }

  /* The next lines, an `error` of the executor, or why the console gave none; null: the page is loaded anew. */
  async function ask() {
    const answer = await fetch(`${labels.lines}?from=${next}`, { headers: { Accept: "application/json", "X-Refresh": "auto" } });
    if (answer.redirected) {
      window.location.reload();
      return null;
    }
    const part = await answer.json();
    if (answer.ok) return part;
    if (part.msg && GONE.includes(answer.status)) return { refused: labels.textGone, isGone: true };
    return { refused: part.msg || part.error || labels.textConsole, isFault: answer.status === 500 };
  }

  function retry({ error, refused, isGone, isFault }, rounds) {
    if (error || isFault) failures += 1;
    const isGivenUp = failures >= FAILURES_MAX;
    showState(refused || `${isGivenUp ? labels.textGivenUp : labels.textUnreachable} (${error})`);
    if (!isGone && !isGivenUp) window.setTimeout(step, RETRY_MS, rounds);
  }

  async function step(rounds) {
    if (!view.isConnected) return;
    const part = await ask().catch(() => ({ refused: labels.textConsole }));
    if (!part) return;
    if (part.refused || part.error) {
      retry(part, rounds);
      return;
    }
    failures = 0;
    if (part.lines.length) {
      addLines(part.from, part.lines);
      next = part.to + 1;
    }
    if (rounds === 0 || (part.lines.length && window.location.hash)) showLinkedLine();
    /* announce new lines only */
    view.setAttribute("aria-live", rounds > 0 && follow.checked ? "polite" : "off");
    if (part.end) {
      finish(rounds <= 1 && !hasChanged(part));
      return;
    }
    if (hasChanged(part)) await refreshFacts().catch(() => {});
    showProgress(part.progress);
    if (hasMore(part)) {
      showState(labels.textLoading);
      window.setTimeout(step, 0, rounds + 1);
      return;
    }
    showState(part.note ? `${labels.textWaiting} (${part.note})` : labels.textWaiting);
    window.setTimeout(step, part.lines.length ? POLL_MS / 4 : POLL_MS, rounds + 1);
  }

  /* Whether the next lines exist already. A run that has ended may still write: that it has says nothing. */
  function hasMore(part) {
    return part.lines.join("").length >= CUT_CHARACTERS;
  }

  /* Whether the run has another state than its banner shows. */
  function hasChanged(part) {
    const banner = root.querySelector("[data-run-banner]");
    return banner !== null && "outcome" in part && banner.dataset.outcome !== part.outcome;
  }

  function shownText() {
    const isBare = view.classList.contains("no-stamps");
    const texts = Array.from(view.children, (row) => {
      const body = row.lastElementChild;
      const stamp = isBare ? body.querySelector(".stamp") : null;
      return stamp ? body.textContent.slice(stamp.textContent.length) : body.textContent;
    });
    return texts.map((text) => `${text}\n`).join("");
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
  root.querySelector("[data-copy-log]").addEventListener("click", (event) => copy(event.currentTarget, shownText(), labels.textCopied).catch(() => {}));
  jump.addEventListener("click", showFirstError);
  view.addEventListener("keydown", (event) => {
    if (event.key !== "e" || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    showFirstError();
  });
  tools.addEventListener("log-reveal", (event) => reveal(event.detail));
  window.addEventListener("hashchange", showLinkedLine);
  offerNotification(tools);
  tools.hidden = false;
  showState(labels.textLoading);
  step(0);
}

openLog(document.querySelector("main") || document.body);
