/* Rolling log: opens at its end, of a failed run at its last error, polls for new lines until the run has a result and no
   more lines arrive, and follows its state. */
import { copy } from "./copy.js";
import { ErrorSteps } from "./log-errors.js";
import { LogRows } from "./log-rows.js";
import { LogSearch } from "./log-search.js";

const POLL_MS = 2000;
const RETRY_MS = 5000;
const FAILURES_MAX = 20;
/* a piece of so many characters was cut: there are more lines */
const CUT_CHARACTERS = 40000;
/* lines of the end, and of each piece before it */
const LINES_AT_ONCE = 1000;
const NEAR_END_PX = 40;
const NEAR_START_PX = 200;
/* lines that are loaded above one that is linked to */
const LINES_ABOVE = 40;
/* statuses of the console for a run that was deleted, or that the reader may not see any more */
const GONE = [403, 404];
/* parts of the page of a run that change with its state */
const PARTS = ["[data-run-shape]", "[data-run-acts]", "[data-run-banner]", ".run-tabs"];
const COLUMNS = "log-columns";
const PHONE = "(max-width: 767.98px)";

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

/* Columns that are shown, as they were chosen last; on a phone there is room for the text only. */
function keepColumns(tools, view) {
  const classes = { stamps: "no-stamps", sources: "no-sources", wrap: "no-wrap" };
  let chosen = {};
  try {
    chosen = JSON.parse(window.localStorage.getItem(COLUMNS)) || {};
  } catch {
    /* a browser that keeps nothing */
  }
  const isPhone = window.matchMedia(PHONE).matches;
  for (const [name, hidden] of Object.entries(classes)) {
    const box = tools.querySelector(`[data-${name}]`);
    const isShown = () => view.classList.toggle(hidden, !box.checked);
    box.checked = isPhone && name !== "wrap" ? false : chosen[name] !== false;
    isShown();
    box.addEventListener("change", () => {
      isShown();
      chosen[name] = box.checked;
      try {
        window.localStorage.setItem(COLUMNS, JSON.stringify(chosen));
      } catch {
        /* as above */
      }
    });
  }
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
  const earlier = root.querySelector("[data-earlier]");
  const labels = view.dataset;
  const page = root.querySelector("[data-run-page]");
  const isSheet = view.closest("dialog") !== null || !page;
  const rows = new LogRows(view, root.querySelector("[data-map]"), { page: isSheet && page ? page.dataset.runPage : "", word: labels.textLine });
  const search = new LogSearch(view, tool("find"), tool("found"));
  const follow = tool("follow");
  const errors = new ErrorSteps(tools, rows, labels, showError);
  let next = 1;
  let failures = 0;
  let isFirstPiece = true;
  let isReadOn = false;
  let isLoadingEarlier = false;
  /* lines that were not kept or not fetched: {from, to, text}; `to` is 0 for all from one on */
  let missing = [];

  const gapAt = (number) => missing.find(({ from, to }) => from <= number && number <= to);

  /* Number of the last line before those that are shown; 0 without any. */
  function lastBefore() {
    const gap = gapAt(rows.first - 1);
    return (gap ? gap.from : rows.first) - 1;
  }

  function showState(text) {
    status.textContent = text;
    if (follow.checked) view.scrollTop = view.scrollHeight;
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
      if (!now || !then) continue;
      if (now.querySelector("details[open]")) then.querySelector("details").open = true;
      now.replaceWith(document.adoptNode(then));
    }
    showCount();
  }

  /* What the handler reports with context.progress(). */
  function showProgress(progress) {
    const place = root.querySelector("[data-progress]");
    if (!place || !progress) return;
    const bar = place.querySelector("progress");
    bar.value = progress.percent;
    bar.setAttribute("aria-valuetext", `${progress.percent}% ${progress.text}`.trim());
    place.querySelector("[data-progress-text]").textContent = progress.text;
    place.hidden = false;
  }

  /* Number of lines, in the tab. */
  function showCount() {
    const tab = root.querySelector("[data-output-tab]");
    if (!tab || next === 1) return;
    const hint = tab.querySelector(".tab-hint") || tab.appendChild(Object.assign(document.createElement("span"), { className: "tab-hint" }));
    hint.textContent = labels.textLines.replace("#", (next - 1).toLocaleString(document.documentElement.lang));
  }

  function refreshTools() {
    earlier.hidden = lastBefore() < 1;
    errors.refresh();
    showCount();
    try {
      search.refresh();
    } catch {
      /* errors of the search must not stop the log */
    }
  }

  function addLines(part) {
    if (isReadOn) rows.clear(); /* the end is further on: what was shown of it is none */
    const gap = next > 1 && part.from > next ? gapAt(part.from - 1) : null;
    if (gap) rows.note(gap.text, "append");
    errors.count(part, () => rows.append(part.from, part.lines, follow.checked));
    if (follow.checked) view.scrollTop = view.scrollHeight;
    refreshTools();
  }

  /* Loads the lines before the first one, down to line `from`. */
  async function loadEarlier(from) {
    const gap = gapAt(rows.first - 1);
    if (gap) rows.note(gap.text, "prepend");
    const last = lastBefore();
    if (isLoadingEarlier || last < 1) return;
    isLoadingEarlier = true;
    const start = Math.max(1, from <= last ? from : last - LINES_AT_ONCE + 1);
    const inner = missing.find(({ to }) => to >= start && to < last);
    const first = inner ? inner.to + 1 : start;
    const texts = [];
    try {
      while (first + texts.length <= last) {
        const part = await fetchLines(`to=${last}&from=${first + texts.length}`);
        if (!part || !part.lines || !part.lines.length) return;
        texts.push(...part.lines);
      }
      rows.prepend(first, texts.slice(0, last - first + 1));
      refreshTools();
    } catch {
      /* the button stays */
    } finally {
      isLoadingEarlier = false;
    }
  }

  function reveal(row) {
    follow.checked = false;
    const fold = row.closest("details");
    if (fold) fold.open = true;
    row.scrollIntoView({ block: "center" });
  }

  function showError(row) {
    search.mark(row);
    reveal(row);
    view.focus({ preventScroll: true });
  }

  async function showLinkedLine() {
    const number = Number((/^#L(\d+)$/.exec(window.location.hash) || [])[1] || 0);
    if (!number || isSheet) return;
    if (number < rows.first) await loadEarlier(number - LINES_ABOVE);
    /* behind a gap, up to which lines were loaded first */
    if (number < rows.first && missing.length) await loadEarlier(number - LINES_ABOVE);
    const row = document.getElementById(`L${number}`);
    if (!row || !view.contains(row)) return;
    if (!search.current) search.mark(row);
    reveal(row);
  }

  /* The end of a failed run may say nothing about the error: it stands above. */
  function showLastError() {
    const banner = root.querySelector("[data-run-banner]");
    const row = errors.starts.at(-1);
    if (!row || window.location.hash || !banner || banner.dataset.outcome !== "failed") return;
    if (row.getBoundingClientRect().top < view.getBoundingClientRect().top) reveal(row);
  }

  function notifyEnd() {
    const asked = tool("notify");
    if (!asked) return;
    asked.closest("label").hidden = true;
    if (asked.checked && document.hidden) new Notification(labels.textEnd, { body: document.title, tag: labels.lines });
  }

  function finish(hadEnded) {
    follow.closest("label").hidden = true;
    const tail = missing.find(({ to }) => !to)?.text ?? "";
    if (next === 1) showState(tail || labels.textNothing);
    else showState(`${hadEnded ? labels.textLoaded : labels.textEnd} ${tail}`.trim());
    if (hadEnded) {
      showLastError();
      return;
    }
    notifyEnd();
    refreshFacts().catch(() => {});
  }

  /* Lines, an `error` of the executor, or why the console gave none; null: the page is loaded anew. */
  async function fetchLines(query) {
    const answer = await fetch(`${labels.lines}?${query}`, { headers: { Accept: "application/json", "X-Refresh": "auto" } });
    if (answer.redirected) {
      window.location.reload();
      return null;
    }
    const part = await answer.json();
    missing = part.missing ?? missing;
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
    const range = isFirstPiece || isReadOn ? `last=${LINES_AT_ONCE}&` : "";
    const part = await fetchLines(`${range}from=${next}`).catch(() => ({ refused: labels.textConsole }));
    if (!part) return;
    if (part.refused || part.error) {
      retry(part, rounds);
      return;
    }
    failures = 0;
    if (part.lines.length) {
      addLines(part);
      next = part.to + 1;
      showCount();
      isFirstPiece = false;
    }
    isReadOn = Boolean(part.more);
    if (rounds === 0 || (part.lines.length && window.location.hash)) await showLinkedLine();
    /* announce new lines only */
    view.setAttribute("aria-live", rounds > 0 && follow.checked ? "polite" : "off");
    if (part.end) {
      finish(rounds <= 1 && !hasChanged(part));
      return;
    }
    if (hasChanged(part)) await refreshFacts().catch(() => {});
    showProgress(part.progress);
    if (isReadOn || hasMore(part)) {
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
    const isShown = (name) => !view.classList.contains(`no-${name}`);
    const texts = Array.from(rows.lines, ({ logText }) => {
      return (isShown("stamps") ? logText.stamp : "") + (isShown("sources") ? logText.source : "") + logText.text;
    });
    return texts.map((text) => `${text}\n`).join("");
  }

  view.addEventListener("scroll", () => {
    const atEnd = view.scrollHeight - view.scrollTop - view.clientHeight < NEAR_END_PX;
    if (!atEnd) follow.checked = false;
    else if (view.scrollTop > 0) follow.checked = true;
    if (view.scrollTop < NEAR_START_PX && !follow.checked) loadEarlier(rows.first - LINES_AT_ONCE);
  });
  follow.addEventListener("change", () => {
    if (follow.checked) view.scrollTop = view.scrollHeight;
  });
  earlier.addEventListener("click", () => loadEarlier(rows.first - LINES_AT_ONCE));
  root.querySelector("[data-copy-log]").addEventListener("click", (event) => copy(event.currentTarget, shownText(), labels.textCopied).catch(() => {}));
  view.addEventListener("keydown", (event) => {
    if (event.key !== "e" || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    errors.first();
  });
  tools.addEventListener("log-reveal", (event) => reveal(event.detail));
  window.addEventListener("hashchange", showLinkedLine);
  keepColumns(tools, view);
  offerNotification(tools);
  tools.hidden = false;
  showState(labels.textLoading);
  step(0);
}

/* The table of a result, for a spreadsheet. */
for (const button of document.querySelectorAll("[data-copy-csv]")) {
  button.addEventListener("click", async () => {
    const answer = await fetch(button.dataset.copyCsv);
    if (answer.ok) copy(button, (await answer.text()).replace(/^\ufeff/, ""), button.dataset.textCopied).catch(() => {});
  });
}

openLog(document.querySelector("main") || document.body);
