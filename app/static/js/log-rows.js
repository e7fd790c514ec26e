/* Rows of a log in their view: added at both ends, with lines of the client folded, and marks at the right edge. */
import { levelOf } from "./log-levels.js";
import { ESCAPES, isFramework, makeLine } from "./log-line.js";

/* lines kept while a running log is followed; earlier ones can be loaded again */
const KEPT_MAX = 5000;
export const STARTS = "[data-starts-errors]";
const BAD = new Set(["error", "frame"]);
const MAP_HEIGHT = 1000;
const MARK_MIN = 4;
const SVG = "http://www.w3.org/2000/svg";

export class LogRows {
  /* `page`: URL of the page whose lines are linked to, empty for this one; `word`: "Line". */
  constructor(view, map, { page, word }) {
    this.view = view;
    this.map = map;
    this.page = page;
    this.word = word;
    this.level = "";
    this.isDrawn = true;
    map?.addEventListener("click", (event) => {
      const frame = map.getBoundingClientRect();
      const share = (event.clientY - frame.top) / frame.height;
      view.scrollTop = share * view.scrollHeight - view.clientHeight / 2;
    });
  }

  get lines() {
    return this.view.querySelectorAll(".log-line");
  }

  /* Number of the first line in the view; 1 without any. */
  get first() {
    return this.view.querySelector(".log-line")?.lineNumber ?? 1;
  }

  clear() {
    this.view.replaceChildren();
    this.level = "";
  }

  append(first, texts, isFollowed) {
    const last = this.view.lastElementChild;
    const [nodes, level] = this.make(first, texts, this.level, last?.matches(".log-fold") ? last : null);
    this.level = level;
    this.view.append(nodes);
    if (isFollowed) this.trim();
    this.draw();
  }

  prepend(first, texts) {
    const before = this.view.scrollHeight - this.view.scrollTop;
    this.view.prepend(this.make(first, texts, "", null)[0]);
    this.view.scrollTop = this.view.scrollHeight - before;
    this.draw();
  }

  /* Says at one end of the view why lines are missing there; once. */
  note(text, place) {
    const end = place === "append" ? this.view.lastElementChild : this.view.firstElementChild;
    if (end?.matches(".log-missing")) return;
    this.view[place](Object.assign(document.createElement("p"), { className: "log-missing", textContent: text }));
  }

  /* Nodes of lines and the level of the last; `fold`: lines of the client at the end of the view. */
  make(first, texts, before, fold) {
    const nodes = document.createDocumentFragment();
    let level = before;
    texts.forEach((text, index) => {
      const above = level;
      level = levelOf(text.replace(ESCAPES, ""), above);
      const row = makeLine(first + index, text, { level, word: this.word, page: this.page });
      if (BAD.has(level) && !BAD.has(above)) row.dataset.startsErrors = "";
      this.view.classList.toggle("has-stamps", this.view.classList.contains("has-stamps") || row.logText.stamp !== "");
      this.view.classList.toggle("has-sources", this.view.classList.contains("has-sources") || row.logText.source !== "");
      if (isFramework(row)) {
        if (!fold) nodes.append((fold = makeFold()));
        fold.append(row);
        nameFold(fold);
      } else {
        fold = null;
        nodes.append(row);
      }
    });
    return [nodes, level];
  }

  trim() {
    let surplus = this.lines.length - KEPT_MAX;
    while (surplus > 0) {
      const node = this.view.firstElementChild;
      surplus -= node.matches(".log-line") ? 1 : node.querySelectorAll(".log-line").length;
      node.remove();
    }
  }

  /* Marks of errors and warnings, at their place among the lines. */
  draw() {
    if (!this.map || !this.isDrawn) return;
    this.isDrawn = false;
    window.requestAnimationFrame(() => {
      this.isDrawn = true;
      const { lines } = this;
      const picture = document.createElementNS(SVG, "svg");
      picture.setAttribute("viewBox", `0 0 14 ${MAP_HEIGHT}`);
      picture.setAttribute("preserveAspectRatio", "none");
      const scale = (MAP_HEIGHT * usedShare(this.view)) / Math.max(lines.length, 1);
      for (const { from, to, kind } of markedRanges(lines)) {
        const mark = document.createElementNS(SVG, "rect");
        mark.setAttribute("class", kind);
        for (const [name, value] of Object.entries({ x: 3, width: 8, y: from * scale, height: Math.max((to - from) * scale, MARK_MIN) })) {
          mark.setAttribute(name, value);
        }
        picture.append(mark);
      }
      this.map.replaceChildren(picture);
    });
  }
}

/* Share of the height of a view that its rows take; they may be fewer than have room. */
function usedShare(view) {
  const [first, last] = [view.firstElementChild, view.lastElementChild];
  if (!first || !view.clientHeight) return 1;
  return Math.min(1, (last.getBoundingClientRect().bottom - first.getBoundingClientRect().top) / view.clientHeight);
}

function markedRanges(lines) {
  const ranges = [];
  lines.forEach((row, index) => {
    const kind = row.matches(".level-error, .level-frame") ? "bad" : row.matches(".level-warn") ? "warn" : "";
    const last = ranges.at(-1);
    if (kind && last && last.kind === kind && last.to === index) last.to = index + 1;
    else if (kind) ranges.push({ from: index, to: index + 1, kind });
  });
  return ranges;
}

function makeFold() {
  const fold = document.createElement("details");
  fold.className = "log-fold";
  const summary = document.createElement("summary");
  const [number, words] = [document.createElement("span"), document.createElement("span")];
  summary.append(number, words);
  fold.append(summary);
  return fold;
}

function nameFold(fold) {
  const rows = fold.querySelectorAll(".log-line");
  const [first, last] = [rows[0], rows[rows.length - 1]];
  const [number, words] = fold.firstElementChild.children;
  number.textContent = first === last ? String(first.lineNumber) : `${first.lineNumber}–${last.lineNumber}`;
  words.textContent = Array.from(rows, (row) => row.logText.text.replace(/(?:<br>|\s|^)-{5,}\s*|\s*-{5,}(?:<br>|$)/g, " ").trim()).join(" · ");
}
