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
    const wanted = this.field.value.toLowerCase();
    this.hits = [];
    const ranges = [];
    for (const row of this.view.children) {
      const isHit = wanted !== "" && row.lastElementChild.textContent.toLowerCase().includes(wanted);
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

/* Where a text stands in an element; a place that spans two colours is not marked by itself, its line is. */
function rangesIn(element, wanted) {
  const ranges = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data.toLowerCase();
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
      const range = new Range();
      range.setStart(walker.currentNode, at);
      range.setEnd(walker.currentNode, Math.min(at + wanted.length, walker.currentNode.length));
      ranges.push(range);
    }
  }
  return ranges;
}
