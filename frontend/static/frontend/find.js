// The box that finds anything: Ctrl-K, `/` (keys.js) or its button. A combobox with a list (WAI-ARIA): the keyboard stays in the
// field, and the arrows move through the results. The server makes the results; a search has a time limit.
(() => {
  const box = document.getElementById("find");
  if (!box) return; // not on the page that asks to sign in
  const field = document.getElementById("find-q");
  const results = document.getElementById("find-results");
  const status = document.getElementById("find-status");

  const LIMIT_MS = 5_000;
  const PAUSE_MS = 150; // after the last key
  let asked = null; // the request that is under way
  let shown = ""; // the words whose results are shown
  let later = 0;

  const options = () => [...results.querySelectorAll("[role=option]")];
  const active = () => results.querySelector("[aria-selected=true]");
  const choose = (option) => {
    active()?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) field.setAttribute("aria-activedescendant", option.id);
    else field.removeAttribute("aria-activedescendant");
  };
  const show = (html, text) => {
    results.innerHTML = html; // made by our server, which escapes names
    const said = results.querySelector("[data-status]");
    status.textContent = text || said?.textContent.trim() || "";
    said?.remove();
    field.setAttribute("aria-expanded", String(options().length > 0));
    choose(options()[0]);
  };

  const search = async () => {
    clearTimeout(later);
    asked?.abort();
    const words = field.value.trim();
    shown = words;
    if (!words) {
      asked = null;
      show("", "");
      return;
    }
    const mine = asked = new AbortController();
    const timer = setTimeout(() => mine.abort("late"), LIMIT_MS);
    box.setAttribute("aria-busy", "true");
    const address = `${box.dataset.url}?${new URLSearchParams({ q: words })}`;
    try {
      const answer = await fetch(address, { headers: { "Kcoord-Search": "1" }, redirect: "manual", signal: mine.signal });
      if (answer.type === "opaqueredirect") location.assign(address); // signed out
      else if (answer.ok) show(await answer.text(), "");
      else show("", answer.status === 503 ? "The server cannot use its database." : `The server could not search (${answer.status}).`);
    } catch {
      if (mine.signal.aborted && mine.signal.reason !== "late") return; // other words were written meanwhile
      shown = "";
      show("", mine.signal.aborted ? `No answer within ${LIMIT_MS / 1_000} s. Enter searches again.` : "The server does not answer. Enter searches again.");
    } finally {
      clearTimeout(timer);
      if (asked === mine) {
        asked = null;
        box.removeAttribute("aria-busy");
      }
    }
  };

  const open = () => {
    if (box.open) return;
    box.showModal();
    field.focus();
    field.select();
  };
  const fill = (words) => {
    field.value = words;
    field.focus();
    search();
  };

  field.addEventListener("input", () => {
    clearTimeout(later);
    later = setTimeout(search, PAUSE_MS);
  });
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const all = options();
    const at = all.indexOf(active());
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && all.length) {
      event.preventDefault();
      choose(all[(at + step + all.length) % all.length]);
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (field.value.trim() === shown && active()) active().click();
      else search();
    }
  });
  results.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (!option) return;
    const { fill: words, control } = option.dataset;
    if (!words && !control) return;
    event.preventDefault();
    if (words) fill(words);
    else {
      box.close();
      document.getElementById(control)?.click();
      document.getElementById(control)?.focus();
    }
  });

  document.getElementById("find-close").addEventListener("click", () => box.close());
  box.addEventListener("click", (event) => { if (event.target === box) box.close(); }); // the backdrop
  document.querySelector(".find-open").addEventListener("submit", (event) => {
    event.preventDefault();
    open();
  });

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.altKey || event.shiftKey) return;
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault(); // the browser's own search
    open();
  });
})();
