/* The rolling log: asks for new lines until the run has a result and nothing new comes. Everything is written as text. */
"use strict";

(function () {
  const view = document.querySelector("[data-lines]");
  if (!view) return;

  const POLL_MS = 2000;
  const RETRY_MS = 5000;
  const FAILURES_MAX = 20;
  /* more lines are not kept in the page; all of them are in the text */
  const KEPT_MAX = 5000;
  const NEAR_END_PX = 40;
  const LEVELS = [
    [/\b(ERROR|FATAL|CRITICAL|SEVERE|Traceback|Exception)\b/, "level-error"],
    [/\bWARN(ING)?\b/, "level-warn"],
  ];

  const status = document.querySelector("[data-log-status]");
  const follow = document.querySelector("[data-follow]");
  const wrap = document.querySelector("[data-wrap]");
  const find = document.querySelector("[data-find]");
  const found = document.querySelector("[data-found]");
  const words = view.dataset;
  let next = 1;
  let failures = 0;
  let cut = false;

  function addLine(number, text) {
    const row = document.createElement("div");
    row.className = "log-line";
    row.id = `L${number}`;
    for (const [pattern, name] of LEVELS) {
      if (pattern.test(text)) {
        row.classList.add(name);
        break;
      }
    }
    const link = document.createElement("a");
    link.href = `#L${number}`;
    link.textContent = String(number);
    link.setAttribute("aria-label", `${words.textLine} ${number}`);
    const body = document.createElement("span");
    body.textContent = text;
    row.append(link, body);
    return row;
  }

  function addLines(first, lines) {
    const rows = document.createDocumentFragment();
    lines.forEach((text, index) => rows.append(addLine(first + index, text)));
    view.append(rows);
    while (view.childElementCount > KEPT_MAX) {
      view.firstElementChild.remove();
      cut = true;
    }
    if (follow.checked) view.scrollTop = view.scrollHeight;
    if (find.value) search();
  }

  function say(text) {
    status.textContent = cut ? `${text} ${words.textCut}` : text;
  }

  function search() {
    const wanted = find.value.toLowerCase();
    let count = 0;
    let first = null;
    for (const row of view.children) {
      const hit = wanted !== "" && row.lastElementChild.textContent.toLowerCase().includes(wanted);
      row.classList.toggle("marked", hit);
      if (hit) {
        count += 1;
        first = first || row;
      }
    }
    found.textContent = wanted === "" ? "" : String(count);
    return first;
  }

  function goToFirst() {
    const first = search();
    if (!first) return;
    follow.checked = false;
    first.scrollIntoView({ block: "center" });
  }

  function showLinkedLine() {
    const row = window.location.hash.startsWith("#L") ? document.getElementById(window.location.hash.slice(1)) : null;
    if (!row) return;
    follow.checked = false;
    row.scrollIntoView({ block: "center" });
  }

  /* The page around the log is old once the run has ended: take the parts that changed from a new one. */
  async function refreshFacts() {
    const answer = await fetch(window.location.pathname, { headers: { Accept: "text/html" } });
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of ["[data-facts]", "[data-story]", "[data-run-state]"]) {
      const now = document.querySelector(part);
      const then = page.querySelector(part);
      if (now && then) now.replaceWith(document.adoptNode(then));
    }
    document.querySelectorAll("[data-while-running]").forEach((button) => button.remove());
  }

  function finish(wasOver) {
    if (next === 1) say(words.textNothing);
    else say(wasOver ? words.textLoaded : words.textEnd);
    if (!wasOver) refreshFacts();
  }

  async function ask() {
    const answer = await fetch(`${words.lines}?from=${next}`, { headers: { Accept: "application/json" } });
    if (answer.redirected) {
      window.location.reload();
      return null;
    }
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  }

  async function step(rounds) {
    let part;
    try {
      part = await ask();
      if (!part) return;
      if (part.error) throw new Error(part.error);
      failures = 0;
    } catch (error) {
      failures += 1;
      const why = error.message && !/^\d+$/.test(error.message) ? ` (${error.message})` : "";
      if (failures >= FAILURES_MAX) {
        say(words.textGivenUp + why);
        return;
      }
      say(words.textUnreachable + why);
      window.setTimeout(step, RETRY_MS, rounds);
      return;
    }
    if (part.lines.length) {
      addLines(part.from, part.lines);
      next = part.to + 1;
    }
    if (rounds === 0 || (part.lines.length && window.location.hash)) showLinkedLine();
    if (part.end) {
      finish(rounds <= 1);
      return;
    }
    say(part.note ? `${words.textWaiting} (${part.note})` : words.textWaiting);
    window.setTimeout(step, part.lines.length ? POLL_MS / 4 : POLL_MS, rounds + 1);
  }

  view.addEventListener("scroll", () => {
    const atEnd = view.scrollHeight - view.scrollTop - view.clientHeight < NEAR_END_PX;
    if (!atEnd) follow.checked = false;
    else if (view.scrollTop > 0) follow.checked = true;
  });
  follow.addEventListener("change", () => {
    if (follow.checked) view.scrollTop = view.scrollHeight;
  });
  wrap.addEventListener("change", () => view.classList.toggle("no-wrap", !wrap.checked));
  find.addEventListener("input", search);
  find.addEventListener("keydown", (event) => {
    if (event.key === "Enter") goToFirst();
  });
  window.addEventListener("hashchange", showLinkedLine);
  say(words.textWaiting);
  step(0);
})();
