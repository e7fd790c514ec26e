/* CodeMirror in place of the text area, which remains the posted field. It is loaded after the page, which shows the code without it. */
import { load } from "./glue-modes.js";

const place = document.querySelector("[data-editor]");
const form = document.querySelector("[data-glue]");
const area = form ? form.querySelector("textarea.code") : null;

function start(library) {
  const { Compartment, EditorState, EditorView, HighlightStyle, basicSetup, defaultHighlightStyle, oneDark, syntaxHighlighting } = library;
  const theme = new Compartment();
  const syntax = new Compartment();
  /* the orange of escapes and patterns is too light on white */
  const darker = defaultHighlightStyle.specs.map((spec) => (spec.color === "#e40" ? { ...spec, color: "#b33a00" } : spec));
  const light = syntaxHighlighting(HighlightStyle.define(darker));
  const themeNow = () => (document.documentElement.dataset.bsTheme === "dark" ? oneDark : light);
  /* what a refused form shows is saved nowhere */
  let saved = form.hasAttribute("data-refused") ? null : area.defaultValue;
  form.toggleAttribute("data-is-changed", saved !== area.value);
  const hadFocus = document.activeElement === area;
  const view = new EditorView({
    doc: area.value,
    selection: hadFocus ? { anchor: area.selectionStart, head: area.selectionEnd } : undefined,
    parent: place,
    extensions: [
      basicSetup,
      EditorState.phrases.of(JSON.parse(place.dataset.phrases)),
      EditorView.cspNonce.of(place.dataset.nonce),
      EditorView.contentAttributes.of({ "aria-label": area.labels[0] ? area.labels[0].textContent : "", tabindex: "0" }),
      theme.of(themeNow()),
      syntax.of([]),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) form.toggleAttribute("data-is-changed", update.state.doc.toString() !== saved);
      }),
    ],
  });
  const loaded = load(place.dataset.language, library);
  if (loaded) loaded.then((support) => view.dispatch({ effects: syntax.reconfigure(support) }));
  place.hidden = false;
  area.hidden = true;
  if (hadFocus) view.focus();
  document.addEventListener("themechange", () => view.dispatch({ effects: theme.reconfigure(themeNow()) }));
  /* saves if remark and password are entered, else focuses the first that is missing */
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.key.toLowerCase() !== "s") return;
    event.preventDefault();
    const remark = form.elements.glue_remark;
    const password = form.elements.password;
    if (remark.value.trim().length < remark.dataset.least) remark.focus();
    else if (password && !password.value) password.focus();
    else form.requestSubmit();
  });
  form.addEventListener("submit", () => {
    area.value = view.state.doc.toString();
    saved = area.value;
  });
  window.addEventListener("beforeunload", (event) => {
    if (view.state.doc.toString() !== saved) event.preventDefault();
  });
}

if (place && area) import("../vendor/codemirror/index.js").then(start);
