/* Filters a page: parts without the words that are typed are hidden, and groups of which nothing is left.
   The entry of the side index for what is in sight is marked. */
const input = document.querySelector("[data-filter]");
const page = document.querySelector("[data-filter-page]");
const none = document.querySelector("[data-filter-none]");
const groups = page ? Array.from(page.querySelectorAll("[data-filter-group]")) : [];
const places = new Map(Array.from(document.querySelectorAll(".side-index [href^='#']"), (link) => [link.hash.slice(1), link]));

function filter() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  let left = 0;
  for (const group of groups) {
    const title = group.querySelector("h2").textContent.toLowerCase();
    let shown = 0;
    for (const part of group.querySelectorAll("[data-filtered]")) {
      const text = `${title} ${(part.querySelector(":scope > summary") || part).textContent.toLowerCase()}`;
      part.hidden = !words.every((word) => text.includes(word));
      const link = places.get(part.dataset.filtered);
      if (link) link.hidden = part.hidden;
      if (!part.hidden) shown += 1;
    }
    group.hidden = !shown;
    const entry = places.get(group.id);
    if (entry) entry.hidden = group.hidden;
    const folded = document.querySelector(`[data-index-of="${CSS.escape(group.id)}"]`);
    if (folded) {
      folded.hidden = group.hidden;
      if (words.length) folded.open = true;
    }
    left += shown;
  }
  none.hidden = Boolean(left);
}

/* the group whose begin has passed the head of the window */
function mark() {
  const visible = groups.filter((group) => !group.hidden);
  const atEnd = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 2 && window.scrollY > 0;
  const passed = visible.filter((group) => group.getBoundingClientRect().top < 120);
  const current = atEnd ? visible.at(-1) : passed.at(-1) || visible[0];
  for (const group of groups) {
    const entry = places.get(group.id) || document.querySelector(`[data-index-of="${CSS.escape(group.id)}"] summary`);
    if (!entry) continue;
    if (group === current) entry.setAttribute("aria-current", "true");
    else entry.removeAttribute("aria-current");
  }
}

if (input) {
  input.addEventListener("input", () => { filter(); mark(); });
  document.addEventListener("scroll", mark, { passive: true });
  mark();
}
