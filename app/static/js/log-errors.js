/* Errors of a log: their number, and the way from one to the next. */
import { STARTS } from "./log-rows.js";

/* Error 1 of 3, and the buttons that lead from one to the next. */
export class ErrorSteps {
  constructor(tools, rows, labels, show) {
    this.rows = rows;
    this.labels = labels;
    this.show = show;
    this.place = tools.querySelector("[data-errors]");
    this.word = this.place.querySelector("[data-first-error] span");
    this.current = null;
    /* errors of the whole log, if the server has counted them */
    this.total = 0;
    this.place.querySelector("[data-first-error]").addEventListener("click", () => this.first());
    for (const button of this.place.querySelectorAll("[data-error-step]")) {
      button.addEventListener("click", () => this.step(Number(button.dataset.errorStep)));
    }
  }

  get starts() {
    return Array.from(this.rows.view.querySelectorAll(STARTS));
  }

  /* Counts the errors of a piece that `add` adds, unless the server has counted more than are sent. */
  count(part, add) {
    const before = this.starts.length;
    add();
    if (part.errors !== undefined) this.total += part.errors;
    else if (this.total) this.total += Math.max(0, this.starts.length - before);
  }

  /* An error with its stack counts once; those of lines that are not loaded are before the loaded ones. */
  refresh() {
    const { starts } = this;
    const total = Math.max(this.total, starts.length);
    const at = starts.indexOf(this.current);
    const isPart = this.rows.first > 1 && !this.total;
    const number = `${total}${isPart ? "+" : ""}`;
    this.place.hidden = total === 0;
    const text = at < 0 ? this.labels.textErrors : this.labels.textError.replace("@", String(total - starts.length + at + 1));
    this.word.textContent = text.replace("#", number);
  }

  first() {
    this.go(this.starts[0]);
  }

  step(by) {
    const { starts } = this;
    const at = starts.indexOf(this.current);
    this.go(at < 0 ? starts.at(by > 0 ? 0 : -1) : starts[(at + by + starts.length) % starts.length]);
  }

  go(row) {
    if (!row) return;
    this.current = row;
    this.refresh();
    this.show(row);
  }
}
