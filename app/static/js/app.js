/* Behaviour of every page: menus, forms in dialogs, toasts, the collapsible sidebar. */
"use strict";

(function () {
  const root = document.documentElement;
  const DAYS_7 = 604800;
  const YEAR = 31536000;
  const TOAST_MS = 8000;
  const SCROLLED_PX = 150;
  const LEAVING_MS = 10000;

  function setCookie(name, value, seconds) {
    const path = document.body.dataset.cookiePath || "/";
    document.cookie = `${name}=${value}; Path=${path}; Max-Age=${seconds}; SameSite=Lax`;
  }

  /* ---- menus ---- */

  function place(menu, button) {
    const at = button.getBoundingClientRect();
    const left = Math.min(Math.max(8, at.right - menu.offsetWidth), window.innerWidth - menu.offsetWidth - 8);
    const below = window.innerHeight - at.bottom;
    const top = below > menu.offsetHeight + 8 ? at.bottom + 3 : Math.max(8, at.top - menu.offsetHeight - 3);
    menu.style.left = `${left}px`;
    menu.style.top = `${top}px`;
    menu.style.margin = "0";
  }

  function onMenuToggle(event) {
    const menu = event.target;
    if (!(menu instanceof HTMLElement) || !menu.matches(".menu[popover]")) return;
    const button = document.querySelector(`[popovertarget="${menu.id}"]`);
    if (event.newState !== "open" || !button) return;
    if (!CSS.supports("position-area", "block-end")) {
      menu.classList.add("placed");
      place(menu, button);
    }
    const first = menu.querySelector("a, button, input:not([type=hidden])");
    if (first && button.matches(":focus-visible")) first.focus();
  }

  function onMenuKey(event) {
    const menu = event.target instanceof Element ? event.target.closest(".menu[popover]") : null;
    if (!menu || !["ArrowDown", "ArrowUp", "Home", "End"].includes(event.key)) return;
    if (event.target.matches("[type=radio]")) return; /* the keys choose among the radio buttons */
    const items = Array.from(menu.querySelectorAll("a, button, input:not([type=hidden])"));
    const at = items.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    items[(next + items.length) % items.length].focus();
    event.preventDefault();
  }

  /* ---- dialogs: a link with data-dialog opens the box of its page in a dialog; its form is posted unchanged ---- */

  /* Filters of a list and fields of its dialogs share ids: labels must refer to the dialog's field. */
  function renameIds(body) {
    for (const part of body.querySelectorAll("[id]")) {
      const { id } = part;
      if (!document.getElementById(id)) continue;
      part.id = `sheet-${id}`;
      for (const label of body.querySelectorAll("label")) if (label.htmlFor === id) label.htmlFor = part.id;
      for (const field of body.querySelectorAll("[aria-describedby]")) {
        const ids = field.getAttribute("aria-describedby").split(" ");
        field.setAttribute("aria-describedby", ids.map((each) => (each === id ? part.id : each)).join(" "));
      }
    }
  }

  function openSheet(title, body, opener) {
    renameIds(body);
    const sheet = document.createElement("dialog");
    sheet.className = "sheet";
    const head = document.createElement("div");
    head.className = "sheet-head";
    const heading = document.createElement("strong");
    heading.textContent = title;
    const close = document.createElement("button");
    close.type = "button";
    close.className = "btn-close";
    close.setAttribute("aria-label", document.body.dataset.close || "Close");
    const leave = () => {
      if (sheet.dispatchEvent(new CustomEvent("sheet-closing", { bubbles: true, cancelable: true }))) sheet.close();
    };
    close.addEventListener("click", leave);
    head.append(heading, close);
    sheet.append(head, body);
    sheet.setAttribute("aria-label", title);
    sheet.addEventListener("close", () => {
      sheet.remove();
      if (opener.isConnected) opener.focus();
    });
    sheet.addEventListener("cancel", (event) => {
      event.preventDefault();
      leave();
    });
    /* browsers close a dialog at the second Esc in any case, so the key is handled first */
    sheet.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      event.preventDefault();
      leave();
    });
    sheet.addEventListener("click", (event) => {
      const cancel = event.target.closest("[data-dialog-close]");
      if (!cancel) return;
      event.preventDefault();
      leave();
    });
    document.body.append(sheet);
    sheet.showModal();
    const focusFirst = () => {
      const field = sheet.querySelector("[autofocus], input:not([type=hidden], :disabled), select:enabled, textarea:enabled, [data-dialog-close]");
      if (field) field.focus();
    };
    focusFirst();
    const preview = sheet.querySelector("[data-parameter-preview]");
    if (preview) import(preview.dataset.parameterPreview).then((script) => script.start(sheet), () => {});
    const promises = sheet.querySelector("[data-promises]");
    if (promises) import(promises.dataset.promises).then((script) => script.start(sheet), () => {});
    const parameters = sheet.querySelector("[data-parameters]");
    if (!parameters) return;
    import(parameters.dataset.parameters).then((script) => {
      script.start(sheet);
      focusFirst();
    }, () => {});
  }

  /* links whose dialogs are being fetched: a further click, as the second of a double click, opens nothing */
  const fetched = new Set();

  async function openDialog(link, opener) {
    if (fetched.has(link.href)) return;
    fetched.add(link.href);
    await showInDialog(link, opener).finally(() => fetched.delete(link.href));
  }

  /* the page of a link; null if that leads elsewhere, as to the login of a proxy, which a script may not read;
     throws if the console did not answer: an error of a proxy is none of its pages */
  async function fetchPage(href) {
    const answer = await fetch(href, { headers: { Accept: "text/html" }, redirect: "manual" });
    if (answer.type === "opaqueredirect") return null;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!answer.ok && !page.querySelector("[data-error]")) throw new Error(answer.statusText);
    return page;
  }

  async function showInDialog(link, opener) {
    let page;
    try {
      page = await fetchPage(link.href);
    } catch {
      addToast({ detail: { text: document.body.dataset.noAnswer } });
      return;
    }
    const body = page && page.querySelector("[data-dialog-body]");
    if (!body) {
      window.location.assign(link.href);
      return;
    }
    const heading = page.querySelector("h1");
    openSheet(heading ? heading.textContent.trim() : "", document.adoptNode(body), opener);
  }

  /* where the browser refuses to copy, the text is selected */
  function copyFrom(button, source) {
    const select = () => window.getSelection().selectAllChildren(source);
    import("./copy.js").then(({ copy }) => copy(button, source.textContent, button.dataset.textCopied)).catch(select);
  }

  function onClick(event) {
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey;
    if (!plain || !(event.target instanceof Element)) return;
    const link = event.target.closest("a[data-dialog]");
    if (link) {
      event.preventDefault();
      const menu = link.closest(".menu[popover]");
      if (menu) menu.hidePopover();
      openDialog(link, menu ? document.querySelector(`[popovertarget="${menu.id}"]`) : link);
      return;
    }
    const filling = event.target.closest("[data-fill]");
    if (filling) {
      const field = document.querySelector(filling.dataset.fill);
      event.preventDefault();
      field.value = filling.dataset.value;
      field.focus();
    }
    const eye = event.target.closest("[data-reveal]");
    if (eye) {
      const field = eye.parentElement.querySelector("input");
      field.type = field.type === "password" ? "text" : "password";
      eye.setAttribute("aria-pressed", String(field.type === "text"));
    }
    const closing = event.target.closest("[data-toast-close]");
    if (closing) closing.closest("[data-toast]").remove();
    const copying = event.target.closest("[data-copy]");
    if (copying) copyFrom(copying, document.querySelector(copying.dataset.copy));
  }

  /* Forms that start a run, in a dialog: the run is shown there, by the script the form names. */
  function showRun(event) {
    const form = event.target;
    if (event.defaultPrevented || !form.matches("dialog form[data-run]")) return;
    event.preventDefault();
    for (const button of form.querySelectorAll("button")) button.disabled = true; /* a second click runs nothing */
    import(form.dataset.run).then(
      (script) => script.run(form),
      () => form.submit(),
    );
  }

  /* ---- frame ---- */

  function foldSidebar(event) {
    event.preventDefault();
    const width = event.currentTarget.value;
    root.classList.remove("sidebar-mini", "sidebar-wide");
    root.classList.add(`sidebar-${width}`);
    document.querySelector(`[data-sidebar-toggle]:not([value="${width}"])`).focus();
    setCookie("xxl_job_sidebar", width, DAYS_7);
  }

  /* The drawer of small screens is the target of a link: it works without scripts, too. */
  const drawer = document.getElementById("sidebar");
  const opener = document.querySelector("[data-drawer]");

  function onDrawer() {
    const isOpen = window.location.hash === "#sidebar" && opener.checkVisibility();
    const wasOpen = opener.getAttribute("aria-expanded") === "true";
    document.querySelector(".page").inert = isOpen;
    opener.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) drawer.querySelector(".sidebar a").focus();
    else if (wasOpen) opener.focus();
  }

  function closeDrawer(event) {
    if (event.key === "Escape" && opener.getAttribute("aria-expanded") === "true") document.querySelector(".nav-shade").click();
  }

  function switchTheme(event) {
    event.preventDefault();
    const theme = root.dataset.bsTheme === "dark" ? "light" : "dark";
    root.dataset.bsTheme = theme;
    setCookie("xxl_job_theme", theme, YEAR);
    document.dispatchEvent(new CustomEvent("themechange", { detail: theme }));
  }

  function startToast(toast) {
    const close = toast.querySelector("[data-toast-close]");
    if (close) close.hidden = false;
    /* screen readers announce only changes of a live region */
    const place = toast.parentElement;
    toast.remove();
    window.requestAnimationFrame(() => place.append(toast));
    /* leaves after a while without pointer and focus */
    let timer = 0;
    const hold = () => window.clearTimeout(timer);
    const release = () => {
      hold();
      timer = window.setTimeout(() => {
        if (toast.matches(":hover, :focus-within")) release();
        else toast.remove();
      }, TOAST_MS);
    };
    for (const name of ["pointerenter", "focusin"]) toast.addEventListener(name, hold);
    for (const name of ["pointerleave", "focusout"]) toast.addEventListener(name, release);
    release();
    const address = new URL(window.location.href);
    for (const name of ["done", "at", "of", "named", "mark"]) address.searchParams.delete(name);
    window.history.replaceState(null, "", address);
  }

  /* the event "toast": detail.html as the server wrote it, or detail.text, a warning */
  function addToast({ detail }) {
    const holder = document.createElement("template");
    holder.innerHTML = detail.html || '<div class="toast-note warning" data-toast><i class="bi bi-exclamation-triangle-fill" aria-hidden="true"></i><span></span></div>';
    const toast = holder.content.firstElementChild;
    if (detail.text) toast.querySelector("span").textContent = detail.text;
    document.querySelector("[data-toasts]").replaceChildren(toast);
    startToast(toast);
  }

  function submitOnChange(event) {
    const field = event.target;
    if (field instanceof HTMLElement && field.matches("[data-submit-on-change]") && field.value !== field.dataset.submitNotOn) field.form.requestSubmit();
  }

  /* GET forms omit empty fields, and dates without a custom range, from the URL. */
  function dropEmpty(event) {
    const form = event.target;
    if (form.method !== "get") return;
    const range = form.elements.namedItem("range");
    const isNamed = range !== null && range.value !== "custom";
    for (const field of form.elements) {
      if ((field.name && field.value === "") || (isNamed && field.closest(".range-custom"))) field.disabled = true;
    }
  }

  document.addEventListener("toggle", onMenuToggle, true);
  document.addEventListener("keydown", onMenuKey);
  document.addEventListener("click", onClick);
  document.addEventListener("change", submitOnChange);
  document.addEventListener("toast", addToast);
  document.addEventListener("submit", dropEmpty);
  document.addEventListener("submit", showRun);
  window.addEventListener("scroll", () => root.classList.toggle("scrolled", window.scrollY > SCROLLED_PX), { passive: true });
  window.addEventListener("beforeunload", () => {
    root.classList.add("leaving");
    /* a download looks like navigation, but no page follows */
    window.setTimeout(() => root.classList.remove("leaving"), LEAVING_MS);
  });
  window.addEventListener("pageshow", () => {
    root.classList.remove("leaving");
    for (const field of document.querySelectorAll(".filters :disabled, .range-custom :disabled")) field.disabled = false;
  });
  if (drawer && opener) {
    window.addEventListener("hashchange", onDrawer);
    document.addEventListener("keydown", closeDrawer);
    onDrawer();
  }
  for (const button of document.querySelectorAll("[data-sidebar-toggle]")) button.addEventListener("click", foldSidebar);
  for (const button of document.querySelectorAll("[data-theme-toggle]")) button.addEventListener("click", switchTheme);
  document.querySelectorAll("[data-toast]").forEach(startToast);
})();
