/* Finding in the log: how many lines match, and from one to the next by Enter, Shift+Enter or the arrows beside the field. */

const HIGHLIGHT = "log-find";

export class LogSearch {
  constructor(view, field, told) {
    this.view = view;
    this.field = field;
    this.told = told;
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

  /* Marks what matches among the lines that are there now. */
  refresh() {
    const wanted = patternOf(this.field.value);
    this.hits = [];
    const ranges = [];
    for (const row of this.view.children) {
      const isHit = wanted !== null && row.lastElementChild.textContent.search(wanted) >= 0;
      row.classList.toggle("marked", isHit);
      if (!isHit) continue;
      this.hits.push(row);
      ranges.push(...rangesIn(row.lastElementChild, wanted));
    }
    if ("highlights" in CSS) CSS.highlights.set(HIGHLIGHT, new Highlight(...ranges));
    this.tell();
  }

  step(by) {
    if (!this.hits.length) return;
    const at = this.hits.indexOf(this.current);
    const next = at < 0 ? (by > 0 ? 0 : this.hits.length - 1) : (at + by + this.hits.length) % this.hits.length;
    this.go(next + 1);
  }

  go(number) {
    this.leave();
    this.current = this.hits[number - 1];
    this.current.classList.add("current");
    this.field.dispatchEvent(new CustomEvent("log-reveal", { bubbles: true, detail: this.current }));
    this.tell();
  }

  leave() {
    if (this.current) this.current.classList.remove("current");
    this.current = null;
  }

  tell() {
    const at = this.hits.indexOf(this.current) + 1;
    this.told.textContent = this.field.value === "" ? "" : `${at ? `${at}/` : ""}${this.hits.length}`;
  }
}

/* A text as a pattern for any case, null for none: toLowerCase() would make some texts longer, and the places found would be others. */
function patternOf(text) {
  return text === "" ? null : new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "giu");
}

/* Where a text stands in an element; a place that spans two colours is not marked by itself, its line is. */
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
