/* Log search: counts matching lines; Enter, Shift+Enter or the arrow buttons move between them. */

const HIGHLIGHT = "log-find";

export class LogSearch {
  constructor(view, field, status) {
    this.view = view;
    this.field = field;
    this.status = status;
    this.hits = [];
    this.current = null;
    field.addEventListener("input", () => {
      this.leave();
      this.refresh();
      this.step(1);
    });
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.step(event.shiftKey ? -1 : 1);
    });
    for (const button of field.parentElement.querySelectorAll("[data-find-step]")) {
      button.addEventListener("click", () => this.step(Number(button.dataset.findStep)));
    }
  }

  /* Highlights the matches in the current lines. */
  refresh() {
    const wanted = patternOf(this.field.value);
    this.hits = [];
    const ranges = [];
    for (const row of this.view.querySelectorAll(".log-line")) {
      const isHit = wanted !== null && row.lastElementChild.textContent.search(wanted) >= 0;
      row.classList.toggle("marked", isHit);
      if (!isHit) continue;
      this.hits.push(row);
      ranges.push(...rangesIn(row.lastElementChild, wanted));
    }
    if ("highlights" in CSS) CSS.highlights.set(HIGHLIGHT, new Highlight(...ranges));
    this.showCount();
  }

  step(by) {
    if (!this.hits.length) return;
    const at = this.hits.indexOf(this.current);
    const next = at < 0 ? (by > 0 ? 0 : this.hits.length - 1) : (at + by + this.hits.length) % this.hits.length;
    this.go(next + 1);
  }

  mark(row) {
    this.leave();
    this.current = row;
    row.classList.add("current");
  }

  go(number) {
    this.mark(this.hits[number - 1]);
    this.field.dispatchEvent(new CustomEvent("log-reveal", { bubbles: true, detail: this.current }));
    this.showCount();
  }

  leave() {
    if (this.current) this.current.classList.remove("current");
    this.current = null;
  }

  showCount() {
    const at = this.hits.indexOf(this.current) + 1;
    this.status.textContent = this.field.value === "" ? "" : `${at ? `${at}/` : ""}${this.hits.length}`;
  }
}

/* Case-insensitive pattern of a text, or null. toLowerCase() can change the length of a text and shift the matches. */
function patternOf(text) {
  return text === "" ? null : new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "giu");
}

/* Ranges of a match in an element; a match across two colours highlights the line only. */
function rangesIn(element, wanted) {
  const ranges = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    for (const found of walker.currentNode.data.matchAll(wanted)) {
      const range = new Range();
      range.setStart(walker.currentNode, found.index);
      range.setEnd(walker.currentNode, found.index + found[0].length);
      ranges.push(range);
    }
  }
  return ranges;
}
