/* Reference of the API: a form in each operation that sends it. The access token is read from its field when
   a request is sent and kept nowhere else; cookies are never sent. */
"use strict";

(function () {
  const HEADERS = ["Content-Type", "Location", "ETag", "Retry-After", "X-Dry-Run", "X-Request-Id", "Idempotent-Replayed"];
  const SHOWN = 200_000;
  const root = document.querySelector("[data-api]");
  const form = document.getElementById("api-form");
  const token = document.getElementById("api-token");
  let fields = 0;

  function element(tag, properties, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  function field(name, input, wide) {
    input.id = `try-${++fields}`;
    input.classList.add("form-control");
    input.spellcheck = false;
    const label = element("label", { htmlFor: input.id, className: "form-label", textContent: name });
    return element("div", { className: wide ? "wide" : "" }, label, input);
  }

  function open(operation) {
    const made = form.content.cloneNode(true).firstElementChild;
    const rows = operation.querySelectorAll("[data-in]");
    const place = made.querySelector(".try-fields");
    let canDry = false;
    for (const { dataset } of rows) {
      if (dataset.name === "dry_run") {
        canDry = true;
        continue;
      }
      const input = element("input", { placeholder: dataset.example, required: "required" in dataset, autocomplete: "off" });
      Object.assign(input.dataset, { in: dataset.in, name: dataset.name });
      place.append(field(dataset.name, input));
    }
    const body = operation.querySelector("template[data-body]");
    if (body) place.append(field(form.dataset.body, element("textarea", { rows: 10, value: body.content.textContent, required: true }), true));
    if (!canDry) made.querySelector(".try-dry").remove();
    if (!place.children.length) place.remove();
    operation.querySelector(".op-body").append(made);
  }

  function requestOf(operation, made) {
    let path = operation.dataset.path;
    const query = new URLSearchParams();
    const headers = { Accept: "application/json, */*;q=0.5" };
    for (const input of made.querySelectorAll("input[data-in]")) {
      const { in: place, name } = input.dataset;
      if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(input.value));
      else if (!input.value) continue;
      else if (place === "query") query.append(name, input.value);
      else headers[name] = input.value;
    }
    if (token.value.trim()) headers.Authorization = `Bearer ${token.value.trim()}`;
    const dry = made.querySelector(".try-dry input");
    if (dry && dry.checked) query.set("dry_run", "true");
    const body = made.querySelector("textarea");
    if (body) headers["Content-Type"] = "application/json";
    const options = { method: operation.dataset.method, headers, credentials: "omit", cache: "no-store" };
    return [root.dataset.api + path + (query.size ? `?${query}` : ""), body ? { ...options, body: body.value } : options];
  }

  async function read(answer, show) {
    const reader = answer.body ? answer.body.getReader() : null;
    const decoder = new TextDecoder();
    let text = "";
    while (reader && text.length < SHOWN) {
      const { done, value } = await reader.read();
      if (done) return text;
      text += decoder.decode(value, { stream: true });
      show(text);
    }
    if (reader) await reader.cancel();
    return reader ? `${text.slice(0, SHOWN)}\n${form.dataset.cut}` : text;
  }

  function pretty(text) {
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text;
    }
  }

  function problemOf(operation, made) {
    const empty = [...made.elements].find((each) => each.required && !each.value.trim());
    if (empty) return [empty, empty.labels[0].textContent];
    const body = made.querySelector("textarea");
    try {
      if (body) JSON.parse(body.value);
    } catch (error) {
      return [body, `${form.dataset.badBody} ${error.message}`];
    }
    return operation.hasAttribute("data-public") || token.value.trim() ? null : [token, form.dataset.noToken];
  }

  async function send(operation, made) {
    const place = made.querySelector(".try-answer");
    const [button, stop] = made.querySelectorAll("button");
    const [wrong, problem] = problemOf(operation, made) || [];
    if (wrong) {
      place.replaceChildren(element("p", { className: "invalid", textContent: problem }));
      wrong.focus();
      return;
    }
    const [address, options] = requestOf(operation, made);
    const stopper = new AbortController();
    stop.onclick = () => stopper.abort();
    button.disabled = true;
    stop.hidden = false;
    const line = element("p", { textContent: `${options.method} ${address}` });
    const text = element("pre", { className: "text", tabIndex: 0 });
    place.replaceChildren(line);
    const started = performance.now();
    try {
      const answer = await fetch(address, { ...options, signal: stopper.signal });
      const took = form.dataset.took.replace("{ms}", Math.round(performance.now() - started));
      const names = HEADERS.filter((name) => answer.headers.has(name));
      line.replaceChildren(element("b", { textContent: `${answer.status} ${answer.statusText}` }), ` · ${took}`);
      place.append(...names.map((name) => element("div", { className: "muted", textContent: `${name}: ${answer.headers.get(name)}` })), text);
      text.textContent = pretty(await read(answer, (part) => { text.textContent = part; }));
      text.hidden = !text.textContent;
    } catch (error) {
      place.append(element("p", { textContent: error.name === "AbortError" ? form.dataset.stopped : form.dataset.failed }));
    }
    button.disabled = false;
    stop.hidden = true;
  }

  function reveal() {
    const target = document.getElementById(decodeURIComponent(window.location.hash.slice(1)));
    const folded = target && target.closest("details:not([open])");
    if (folded) {
      folded.open = true;
      target.scrollIntoView();
    }
  }

  if (!root) return;
  root.addEventListener("toggle", (event) => {
    const operation = event.target.closest("[data-path]");
    if (operation && operation.open && !operation.querySelector("form")) open(operation);
  }, true);
  root.addEventListener("submit", (event) => {
    event.preventDefault();
    send(event.target.closest("[data-path]"), event.target);
  });
  window.addEventListener("pagehide", () => { token.value = ""; });
  window.addEventListener("hashchange", reveal);
  reveal();
})();
