/* Run timeline: draws the runs that the page has as texts (console/report/gantt.py), a link for each; again after
   each refresh, because the time has moved on. Marks keep their element, so that focus stays. */
"use strict";

(function () {
  const SVG = "http://www.w3.org/2000/svg";
  const LINE = 24;
  const LINES_MAX = 3;
  /* pixels by which lines of the axis go beyond a track, whose room cuts them */
  const BEYOND = 72;
  /* percent of the width: narrowest mark, least distance of two signs */
  const LEAST_WIDTH = 0.25;
  const SIGN_ROOM = 1.3;
  const section = document.getElementById("run-timeline");
  if (!section) return;
  const settings = JSON.parse(section.dataset.timeline);
  const signs = new Map(settings.looks.map(([kind, , sign]) => [kind, sign]));
  const skew = Number(document.body.dataset.now) - Date.now();
  const spans = JSON.parse(document.body.dataset.durations);
  const dates = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium", timeZone: settings.zone });

  const inSeconds = () => (Date.now() + skew) / 1000;

  function lasted(ms) {
    if (ms < 1000) return settings.ms.replace("{n}", ms);
    const seconds = Math.floor(ms / 1000);
    const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
    const text = hours ? spans[2] : minutes ? spans[1] : spans[0];
    return text.replace("{h}", hours).replace("{m}", minutes).replace("{s}", seconds % 60);
  }

  function runsOf(lane, now) {
    const runs = [];
    for (const part of lane.querySelectorAll("[data-marks]")) {
      const first = Number(part.dataset.part.split("-")[1]) * settings.seconds;
      let id = 0;
      for (const text of part.dataset.marks.split(" ")) {
        const [outcome, offset, took, next] = text.split(".").map((each) => parseInt(each, 16));
        id += next;
        const [kind, word, sign] = settings.looks[outcome];
        const start = first + offset;
        const isOpen = kind === "info" || kind === "wait";
        const ms = isOpen ? Math.max(0, now - start) * 1000 : took;
        const label = () =>
          [settings.run.replace("{id}", id), word, Number.isNaN(ms) ? "" : lasted(Math.floor(ms)), dates.format(start * 1000)]
            .filter(Boolean)
            .join(" · ");
        runs.push({ key: String(id), kind, sign, start, end: start + (ms || 0) / 1000, label, href: settings.log + id });
      }
    }
    return runs;
  }

  function othersOf(lane, now) {
    const part = lane.querySelector("[data-others]");
    return (part ? JSON.parse(part.dataset.others) : []).map(([kind, start, end, label, href]) => ({
      key: `${kind}${start}`, kind, sign: signs.get(kind), start, end: end === null ? now : end, label: () => label, href,
    }));
  }

  /* overlapping runs get different lines as long as there are enough */
  function stack(marks) {
    const ends = [];
    for (const mark of marks) {
      mark.line = 0;
      if (mark.kind === "skip") continue;
      let line = ends.findIndex((end) => end <= mark.start);
      if (line < 0) line = ends.length;
      if (line >= LINES_MAX) line = ends.indexOf(Math.min(...ends));
      ends[line] = Math.max(ends[line] || 0, mark.end);
      mark.line = line;
    }
    return Math.max(1, ends.length) * LINE;
  }

  function set(element, values) {
    for (const [name, value] of Object.entries(values)) {
      if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
    }
    return element;
  }

  const made = (name) => document.createElementNS(SVG, name);

  function linkOf(known, mark) {
    const link = known.get(mark.key) || made("a");
    if (!link.firstChild) link.append(made("rect"));
    link.dataset.key = mark.key;
    set(link, { href: mark.href });
    return link;
  }

  function tickLines(track, places, height) {
    const group = track.querySelector("g") || track.insertBefore(made("g"), track.firstChild);
    group.replaceChildren(...places.map(([x]) => set(made("line"), { class: "tick", x1: `${x}%`, x2: `${x}%`, y1: -BEYOND, y2: height + BEYOND })));
    return group;
  }

  function draw(track, lane, from, now, places) {
    const known = new Map(Array.from(track.querySelectorAll("a"), (link) => [link.dataset.key, link]));
    const percent = (at) => (100 * (Math.min(now, Math.max(from, at)) - from)) / (now - from);
    const marks = runsOf(lane, now).concat(othersOf(lane, now)).filter((mark) => mark.end >= from);
    marks.sort((one, other) => one.start - other.start);
    const height = stack(marks);
    set(track, { height });
    const lastSign = {};
    let before = tickLines(track, places, height);
    for (const mark of marks) {
      const link = linkOf(known, mark);
      known.delete(mark.key);
      const { sign } = mark;
      const [top, tall] = settings.shapes[mark.kind.split(" ")[0]];
      const x = Math.min(100 - LEAST_WIDTH, percent(mark.start));
      const width = Math.max(LEAST_WIDTH, percent(mark.end) - x);
      set(link, { "aria-label": mark.label() });
      set(link.firstChild, { class: `mark ${mark.kind}`, x: `${x}%`, y: mark.line * LINE + top, width: `${width}%`, height: tall });
      const row = `${mark.line}${sign}`;
      const hasRoom = sign && !(x - lastSign[row] < SIGN_ROOM);
      if (hasRoom) lastSign[row] = x;
      let shown = link.querySelector("text");
      if (!hasRoom && shown) shown.remove();
      if (hasRoom) {
        if (!shown) link.append((shown = made("text")));
        shown.textContent = sign;
        set(shown, { class: `sign ${mark.kind}`, x: `${x}%`, y: mark.line * LINE + 9, "text-anchor": "middle" });
      }
      if (link !== before.nextSibling) track.insertBefore(link, before.nextSibling);
      before = link;
    }
    for (const link of known.values()) link.remove();
  }

  function drawAxis(axis, places) {
    const text = ([x, label]) => {
      const tick = set(made("text"), { class: "tick", x: `${x}%`, y: 14, "text-anchor": "middle" });
      tick.textContent = label;
      return tick;
    };
    axis.replaceChildren(...places.map(text));
  }

  function drawAll() {
    const now = inSeconds();
    const from = now - settings.hours * 3600;
    const axis = section.querySelector("[data-axis]");
    if (!axis) return;
    const ticks = JSON.parse(section.querySelector("[data-ticks]").dataset.ticks);
    const places = ticks.map(([at, label]) => [(100 * (at - from)) / (now - from), label]).filter(([x]) => x > 1 && x < 99);
    drawAxis(axis, places);
    for (const track of section.querySelectorAll("[data-track]")) draw(track, track.closest(".lane"), from, now, places);
  }

  document.addEventListener("live-refreshed", drawAll);
  drawAll();
})();
