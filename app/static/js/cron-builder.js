/* Cron builder: converts an expression to choices and back. */
"use strict";

(function () {
  const button = document.querySelector("[data-cron-builder]");
  const sheet = document.getElementById("cron-builder");
  const input = document.getElementById("cron");
  if (!button || !sheet || !input) return;

  const UNITS = ["second", "minute", "hour", "day", "month", "week", "year"];
  const START = { second: "0", minute: "*", hour: "*", day: "*", month: "*", week: "?", year: "" };
  const WEEKDAYS = { SUN: 1, MON: 2, TUE: 3, WED: 4, THU: 5, FRI: 6, SAT: 7 };
  const MONTHS = { JAN: 1, FEB: 2, MAR: 3, APR: 4, MAY: 5, JUN: 6, JUL: 7, AUG: 8, SEP: 9, OCT: 10, NOV: 11, DEC: 12 };
  const result = sheet.querySelector("[data-builder-result]");
  const words = sheet.querySelector("[data-builder-words]");
  const presets = Array.from(sheet.querySelectorAll("[data-preset]"));
  const PAUSE_MS = 250;
  let timer = 0;

  function section(unit) {
    return sheet.querySelector(`[data-unit="${unit}"]`);
  }

  function value(unit, name) {
    return section(unit).querySelector(`[data-${name}]`).value;
  }

  function set(unit, name, text) {
    section(unit).querySelector(`[data-${name}]`).value = text;
  }

  function chosen(unit) {
    const radio = section(unit).querySelector("input[type=radio]:checked");
    return radio ? radio.value : "every";
  }

  function choose(unit, kind) {
    const radio = section(unit).querySelector(`input[type=radio][value="${kind}"]`);
    if (radio) radio.checked = true;
    return Boolean(radio);
  }

  function items(unit) {
    const ticked = section(unit).querySelectorAll("[data-item]:checked");
    return Array.from(ticked, (box) => box.value).join(",");
  }

  function write(unit) {
    switch (chosen(unit)) {
      case "omit":
        return "";
      case "any":
        return "?";
      case "range":
        return `${value(unit, "low")}-${value(unit, "high")}`;
      case "step":
        return `${value(unit, "start")}/${value(unit, "step")}`;
      case "workday":
        return `${value(unit, "workday")}W`;
      case "last":
        return "L";
      case "nth":
        return `${value(unit, "nthday")}#${value(unit, "nth")}`;
      case "lastday":
        return `${value(unit, "lastday")}L`;
      case "list":
        return items(unit) || "*";
      case "keep":
        return section(unit).querySelector("[data-kept]").textContent;
      default:
        return "*";
    }
  }

  function numbers(unit, text) {
    const names = unit === "week" ? WEEKDAYS : unit === "month" ? MONTHS : {};
    return text.toUpperCase().replace(/[A-Z]{3}/g, (name) => names[name] || name);
  }

  /* 1,5-7 -> 1,5,6,7; empty if it is not such a list */
  function listed(text) {
    const wanted = new Set();
    for (const part of text.split(",")) {
      const match = /^(\d+)(?:-(\d+))?$/.exec(part);
      if (!match || Number(match[2] || 0) > 99) return new Set();
      for (let number = Number(match[1]); number <= Number(match[2] || match[1]); number += 1) wanted.add(String(number));
    }
    return wanted;
  }

  /* Five fields are Unix cron: no seconds, Sunday is 0 or 7. Null if Quartz has no equivalent. */
  function fromUnix([minute, hour, day, month, week]) {
    if ((day !== "*" && week !== "*") || /[\/#L]/.test(week)) return null;
    const shifted = week.replace(/\d+/g, (number) => String((Number(number) % 7) + 1));
    return week === "*" ? ["0", minute, hour, day, month, "?"] : ["0", minute, hour, "?", month, shifted];
  }

  const SHAPES = [
    [/^\?$/, () => ["any", {}]],
    [/^\*$/, () => ["every", {}]],
    [/^L$/, () => ["last", {}]],
    [/^(\d+)-(\d+)$/, (m) => ["range", { low: m[1], high: m[2] }]],
    [/^(\d+)\/(\d+)$/, (m) => ["step", { start: m[1], step: m[2] }]],
    [/^(\d+)W$/, (m) => ["workday", { workday: m[1] }]],
    [/^(\d)#(\d)$/, (m) => ["nth", { nthday: m[1], nth: m[2] }]],
    [/^(\d)L$/, (m) => ["lastday", { lastday: m[1] }]],
  ];

  function read(unit, raw) {
    const text = numbers(unit, raw).replace(/^\*(?=\/)/, unit === "day" || unit === "month" ? "1" : "0");
    section(unit).querySelector("[data-keep]").hidden = true;
    for (const box of section(unit).querySelectorAll("[data-item]")) box.checked = false;
    if (text === "" && choose(unit, "omit")) return;
    for (const [shape, make] of SHAPES) {
      const match = shape.exec(text);
      if (!match) continue;
      const [kind, values] = make(match);
      if (!choose(unit, kind)) break;
      for (const [name, held] of Object.entries(values)) set(unit, name, held);
      return;
    }
    const wanted = listed(text);
    const boxes = Array.from(section(unit).querySelectorAll("[data-item]"));
    if (wanted.size && boxes.length && [...wanted].every((number) => boxes.some((box) => box.value === number))) {
      choose(unit, "list");
      for (const box of boxes) box.checked = wanted.has(box.value);
      return;
    }
    keep(unit, raw);
  }

  /* Expressions the choices cannot represent are kept and offered unchanged. */
  function keep(unit, raw) {
    const place = section(unit).querySelector("[data-keep]");
    place.querySelector("[data-kept]").textContent = raw;
    place.hidden = false;
    choose(unit, "keep");
  }

  function show() {
    result.textContent = UNITS.map(write).join(" ").trim();
    for (const chip of presets) chip.setAttribute("aria-pressed", String(numbers("week", chip.dataset.preset) === result.textContent));
    window.clearTimeout(timer);
    timer = window.setTimeout(describe, PAUSE_MS);
  }

  /* The expression in words, and its next times, as in the form. */
  async function describe() {
    const cron = result.textContent;
    const zone = document.getElementById("time_zone");
    const query = new URLSearchParams({ schedule_type: "CRON", cron, time_zone: zone ? zone.value : "" });
    const answer = await fetch(`${words.dataset.builderWords}?${query}`).catch(() => null);
    if (!answer || !answer.ok || answer.redirected) return;
    const text = await answer.text();
    if (cron === result.textContent) words.innerHTML = text;
  }

  /* Quartz requires exactly one of day and weekday to be a question mark. */
  function balance(unit) {
    const other = { day: "week", week: "day" }[unit];
    if (!other) return;
    if (chosen(unit) === "any" && chosen(other) === "any") choose(other, "every");
    else if (chosen(unit) !== "any" && chosen(other) !== "any") choose(other, "any");
  }

  /* In a typed expression `*` gives way to the other field; two restrictions are kept, and the form rejects them. */
  function balanceTyped() {
    const restricted = ["day", "week"].filter((unit) => !["any", "every"].includes(chosen(unit)));
    if (restricted.length < 2) balance(restricted[0] || "day");
  }

  function openTab(unit) {
    for (const tab of sheet.querySelectorAll("[data-tab]")) {
      const on = tab.dataset.tab === unit;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      tab.classList.toggle("btn-primary", on);
      tab.classList.toggle("btn-default", !on);
      section(tab.dataset.tab).hidden = !on;
    }
  }

  function fill(expression) {
    const fields = expression.trim().split(/\s+/);
    const known = fields.length === 5 ? fromUnix(fields) : fields.length >= 6 ? fields : null;
    UNITS.forEach((unit, index) => read(unit, known ? known[index] || "" : START[unit]));
    balanceTyped();
    show();
  }

  function open() {
    fill(input.value);
    openTab("hour");
    sheet.showModal();
  }

  /* Arrow keys move between tabs. */
  function onTabKey(event) {
    const tabs = Array.from(sheet.querySelectorAll("[data-tab]"));
    const at = tabs.indexOf(event.target);
    const goal = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (at < 0 || goal === undefined) return;
    event.preventDefault();
    const tab = tabs[(goal + tabs.length) % tabs.length];
    openTab(tab.dataset.tab);
    tab.focus();
  }

  function onChange(event) {
    const part = event.target.closest("[data-unit]");
    if (!part) return;
    const unit = part.dataset.unit;
    if (event.target.matches("[data-item]")) choose(unit, "list");
    else if (!event.target.matches("[type=radio]")) {
      const label = event.target.closest("label");
      const radio = label ? label.querySelector("[type=radio]") : null;
      if (radio) radio.checked = true;
    }
    balance(unit);
    show();
  }

  function take() {
    input.value = result.textContent;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    sheet.close();
    input.focus();
  }

  button.hidden = false;
  button.addEventListener("click", open);
  sheet.addEventListener("input", onChange);
  sheet.addEventListener("keydown", onTabKey);
  for (const tab of sheet.querySelectorAll("[data-tab]")) tab.addEventListener("click", () => openTab(tab.dataset.tab));
  for (const chip of presets) chip.addEventListener("click", () => fill(chip.dataset.preset));
  for (const close of sheet.querySelectorAll("[data-builder-close]")) close.addEventListener("click", () => sheet.close());
  sheet.querySelector("[data-builder-take]").addEventListener("click", take);
})();
