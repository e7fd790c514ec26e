/* A separator on top of the last panel of a column: dragged, or moved with the arrow keys, it sets the panel's height. */
const STEP_PX = 24;
const LEAST_PX = 180;

export function start(split) {
  const panel = split.parentElement;
  const column = panel.parentElement;

  /* the style sheet leaves the rest of the column enough room */
  function set(height) {
    column.style.setProperty("--dock", `${Math.max(LEAST_PX, Math.round(height))}px`);
    split.setAttribute("aria-valuenow", Math.round((100 * panel.offsetHeight) / column.offsetHeight));
  }

  split.addEventListener("pointerdown", (event) => split.setPointerCapture(event.pointerId));
  split.addEventListener("pointermove", (event) => {
    if (split.hasPointerCapture(event.pointerId)) set(panel.getBoundingClientRect().bottom - event.clientY);
  });
  split.addEventListener("keydown", (event) => {
    const way = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!way) return;
    event.preventDefault();
    set(panel.offsetHeight + way * STEP_PX);
  });
}
