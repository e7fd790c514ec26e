/* Live parts (console/ui/live_parts.py): asks for the parts that changed and puts them into the page; lets times
   tick. X-Refresh: auto marks requests the user did not make, which do not keep the login. */
"use strict";

(function () {
  const body = document.body;
  const tools = document.querySelector("[data-live-tools]");
  const MARKED_MS = 2000;
  const SLOWEST_S = 60;
  const STALE_S = 30;
  const KEPT = "live-paused";
  const GONE = [403, 404];
  const UNITS = [["hour", 3600], ["minute", 60], ["second", 1]];
  const DAY_S = 86400;
  /* As in domain/text/relative_times.py. */
  const DISTANCE_S = 12 * 3600;
  const NEAR_S = 30 * DAY_S;
  const skew = Number(body.dataset.now || Date.now()) - Date.now();

  /* ---- times ---- */

  const language = document.documentElement.lang;
  const timeZone = body.dataset.zone;
  const relative = new Intl.RelativeTimeFormat(language, { numeric: "always" });
  const named = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
  const dates = new Intl.DateTimeFormat("en-CA", { timeZone, year: "numeric", month: "2-digit", day: "2-digit" });
  const clock = new Intl.DateTimeFormat("en-GB", { timeZone, hour: "2-digit", minute: "2-digit" });

  /* A blank between a number and a Chinese word, as filters.space_units(). */
  function spaced(text) {
    return text.replace(/([0-9])(?=[\u4e00-\u9fff])/g, "$1 ").replace("秒钟", "秒");
  }

  function counted(number, unit) {
    return spaced(relative.format(number, unit));
  }

  function distance(seconds, at) {
    const size = Math.abs(seconds);
    if (size < 2) return seconds > 0 ? body.dataset.dueNow : body.dataset.justNow;
    if (size >= DISTANCE_S) return size > NEAR_S ? "" : day(at);
    const [unit, length] = UNITS.find(([, each]) => size / each >= 1.5) || UNITS.at(-1);
    return counted(Math.sign(seconds) * Math.max(1, Math.round(size / length)), unit);
  }

  function day(at) {
    const dayOf = (ms) => Date.parse(dates.format(ms)) / 1000 / DAY_S;
    const days = dayOf(at) - dayOf(Date.now() + skew);
    return Math.abs(days) > 1 ? counted(days, "day") : `${named.format(days, "day")} ${clock.format(at)}`;
  }

  function span(seconds) {
    const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
    const words = JSON.parse(body.dataset.durations);
    const text = hours ? words[2] : minutes ? words[1] : words[0];
    return text.replace("{h}", hours).replace("{m}", minutes).replace("{s}", Math.floor(seconds) % 60);
  }

  /* As filters.age(): in one unit, at least a minute. */
  function ageWords(seconds) {
    const [unit, length] = [["day", DAY_S], ...UNITS].find(([, each]) => seconds >= each && each > 1) || UNITS[1];
    const long = new Intl.NumberFormat(language, { style: "unit", unit, unitDisplay: "long" });
    return spaced(long.format(Math.max(1, Math.round(seconds / length))));
  }

  function spanWords(time, seconds) {
    return "age" in time.dataset ? ageWords(seconds) : span(seconds);
  }

  function tickTimes() {
    const now = Date.now() + skew;
    for (const time of document.querySelectorAll("time[datetime]")) {
      const at = Date.parse(time.dateTime);
      const seconds = (at - now) / 1000;
      /* A date or a time alone, not "tomorrow 06:00". */
      const isDate = /^\d+[-:]/.test(time.textContent);
      if (isDate || Number.isNaN(seconds)) continue;
      const isSpan = "elapsed" in time.dataset || "age" in time.dataset;
      const text = isSpan ? spanWords(time, Math.max(0, -seconds)) : distance(seconds, at);
      if (text && text !== time.textContent) time.textContent = text;
    }
  }

  /* ---- icon and title of the page while jobs fail: a red dot, "(2 failing) Jobs" ---- */

  const plainTitle = document.title;

  /* The menu has the number of failing jobs. */
  function showIcon() {
    const icon = document.querySelector("link[rel=icon]");
    const number = document.querySelector("[data-failing-jobs]");
    const count = number ? Number(number.dataset.failingJobs) : 0;
    const isFailing = count > 0;
    const title = isFailing ? `(${body.dataset.failing.replace("{n}", count)}) ${plainTitle}` : plainTitle;
    if (document.title !== title) document.title = title;
    const href = isFailing ? icon.dataset.failing : icon.dataset.fine;
    if (icon.getAttribute("href") !== href) icon.setAttribute("href", href);
  }

  /* ---- parts ---- */

  const keyOf = (node) => (node.dataset ? node.dataset.slot || node.dataset.part || node.id : "") || "";
  const existing = (id) => document.querySelector(`[data-part="${id}"]`);

  function parsed(text) {
    const holder = document.createElement("template");
    holder.innerHTML = text;
    return holder.content.firstElementChild;
  }

  class Update {
    constructor(parts) {
      this.parts = parts;
      this.changed = [];
      this.done = new Set();
    }

    run() {
      for (const id of Object.keys(this.parts)) {
        const old = existing(id);
        if (old && !this.done.has(id)) this.refresh(id, old);
      }
      return this.changed;
    }

    refresh(id, old) {
      if (!(id in this.parts) || this.done.has(id)) return;
      this.done.add(id);
      this.changed.push(old);
      this.morph(old, parsed(this.parts[id]));
    }

    /* the element for a slot or for a node that the page does not have yet */
    made(node) {
      const id = node.dataset ? node.dataset.slot : undefined;
      if (id) {
        const old = existing(id);
        if (old) {
          this.refresh(id, old);
          return old;
        }
        this.done.add(id);
        const fresh = this.made(parsed(this.parts[id] || "<span></span>"));
        this.changed.push(fresh);
        return fresh;
      }
      const copy = document.importNode(node, true);
      if (copy.querySelectorAll) for (const slot of copy.querySelectorAll("[data-slot]")) slot.replaceWith(this.made(slot));
      return copy;
    }

    morph(old, fresh) {
      if (old.nodeType !== Node.ELEMENT_NODE) {
        if (old.data !== fresh.data) old.data = fresh.data;
        return;
      }
      if (old.matches("[popover]:popover-open")) return;
      for (const { name } of Array.from(old.attributes)) {
        if (!fresh.hasAttribute(name) && name !== "open" && name !== "tabindex") old.removeAttribute(name);
      }
      for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
      if (!old.hasAttribute("data-live-keep")) this.children(old, fresh);
    }

    /* Children with a key keep their element, others are matched in their order; nothing moves without need. */
    children(parent, fresh) {
      const keys = new Set(Array.from(fresh.childNodes, keyOf).filter(Boolean));
      let at = parent.firstChild;
      for (const node of fresh.childNodes) {
        const key = keyOf(node);
        while (at && keyOf(at) && !keys.has(keyOf(at))) at = this.without(at);
        if (key) {
          const same = Array.from(parent.children).find((child) => keyOf(child) === key);
          const child = same || this.made(node);
          if (same && node.dataset.slot) this.refresh(key, same);
          else if (same) this.morph(same, node);
          if (child === at) at = at.nextSibling;
          else parent.insertBefore(child, at);
        } else if (at && !keyOf(at) && at.nodeName === node.nodeName) {
          this.morph(at, node);
          at = at.nextSibling;
        } else parent.insertBefore(this.made(node), at);
      }
      while (at) at = this.without(at);
    }

    without(node) {
      const next = node.nextSibling;
      node.remove();
      return next;
    }
  }

  /* rows that come above what is seen do not push it down */
  function keepPlace(change) {
    const rows = Array.from(document.querySelectorAll("[data-part] [data-part]"));
    const first = rows.find((row) => row.getBoundingClientRect().bottom > 60);
    const isInside = first && first.parentElement.getBoundingClientRect().top < 0;
    const before = isInside ? first.getBoundingClientRect().top : 0;
    change();
    if (isInside && first.isConnected) window.scrollBy(0, first.getBoundingClientRect().top - before);
  }

  function mark(elements) {
    for (const each of elements.filter((element) => element.matches("tr, li"))) {
      each.classList.add("live-changed");
      window.setTimeout(() => each.classList.remove("live-changed"), MARKED_MS);
    }
  }

  function put(parts) {
    const update = new Update(parts);
    keepPlace(() => update.run());
    mark(update.changed);
    tickTimes();
    showIcon();
    document.dispatchEvent(new CustomEvent("live-refreshed", { detail: { changed: update.changed } }));
  }

  showIcon();
  if (body.dataset.now) window.setInterval(() => document.hidden || tickTimes(), 1000);
  if (!tools) return;

  /* ---- asking ---- */

  const age = tools.querySelector("[data-live-age]");
  const button = tools.querySelector("[data-live-pause]");
  const period = Number(tools.dataset.livePeriod);
  const names = { on: [button.textContent, button.ariaLabel], paused: [button.dataset.livePause, button.dataset.livePausedLabel] };
  /* A page that is this old says so. */
  const staleAt = Math.max(STALE_S, period * 3);
  let seconds = 0;
  let wait = period;
  let isPaused = sessionStorage.getItem(KEPT) === "1";
  let isAsking = false;
  let isLate = false;
  let isEnded = false;

  /* shows why the page is not updated any more: ended, the login; gone, what it shows */
  function end(why) {
    isEnded = true;
    age.hidden = true;
    button.hidden = true;
    tools.querySelector(`[data-live-${why}]`).hidden = false;
  }

  /* whether an error page is the console's, not that of a proxy before it */
  function isOwn(text) {
    return new DOMParser().parseFromString(text, "text/html").querySelector("[data-error]") !== null;
  }

  async function ask(headers) {
    const held = Array.from(document.querySelectorAll("[data-hash]"), (part) => part.dataset.hash).join("");
    const answer = await fetch(window.location.href, {
      redirect: "manual",
      headers: { Accept: "text/html", "X-Parts": held, ...headers },
    });
    if (answer.type === "opaqueredirect") return end("ended");
    if (GONE.includes(answer.status) && isOwn(await answer.text())) return end("gone");
    if (answer.status === 204) return put({});
    if (!answer.ok || !answer.headers.get("Content-Type").startsWith("application/json")) throw new Error("no parts");
    return put((await answer.json()).parts);
  }

  async function refresh(headers) {
    if (isAsking || isEnded) return;
    isAsking = true;
    try {
      await ask(headers);
      isLate = false;
      wait = period;
    } catch {
      isLate = true;
      wait = Math.min(SLOWEST_S, wait * 2);
    }
    isAsking = false;
    seconds = 0;
    if (!isEnded) show();
  }

  function show() {
    [button.textContent, button.ariaLabel] = isPaused ? names.paused : names.on;
    button.classList.toggle("paused", isPaused);
    button.classList.toggle("late", isLate);
    age.hidden = isEnded || !(isLate || seconds >= staleAt);
    age.textContent = isLate ? age.dataset.liveLate : age.dataset.liveAge.replace("#", seconds);
  }

  function tick() {
    if (isEnded || document.hidden) return;
    seconds += 1;
    if (!isPaused && seconds >= wait) refresh({ "X-Refresh": "auto" });
    show();
  }

  button.addEventListener("click", () => {
    isPaused = !isPaused;
    sessionStorage.setItem(KEPT, isPaused ? "1" : "");
    if (!isPaused) refresh({});
    show();
  });
  document.addEventListener("live-wanted", () => refresh({}));
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && !isPaused && seconds >= 1) refresh({ "X-Refresh": "auto" });
  });
  tools.hidden = false;
  show();
  window.setInterval(tick, 1000);
})();
