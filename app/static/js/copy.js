/* Copy buttons: the word in the button's span says for a moment that the text was copied. */

const SAID_MS = 2000;
const buttons = new WeakMap();

/* Browsers offer the clipboard to pages of https and of their own host only; on others a field is copied from. */
export async function copyText(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const before = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  /* an open dialog leaves only itself selectable */
  (document.querySelector("dialog[open]") || document.body).append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  if (before) before.focus({ preventScroll: true });
  if (!isCopied) throw new Error("not copied");
}

/* Copies a text; throws if the browser refuses. */
export async function copy(button, text, copied) {
  await copyText(text);
  const word = button.querySelector("span");
  const known = buttons.get(button) || { label: word.textContent, timer: 0 };
  buttons.set(button, known);
  word.textContent = copied;
  window.clearTimeout(known.timer);
  known.timer = window.setTimeout(() => (word.textContent = known.label), SAID_MS);
}
