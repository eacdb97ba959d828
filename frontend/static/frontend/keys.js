// Keys without a modifier: `/` finds, `j` and `k` go from row to row, `?` shows the list of keys, where they can be turned off
// (WCAG 2.2, 2.1.4), for those who dictate or whose hand trembles.
(() => {
  const list = document.getElementById("keys");
  const wanted = document.getElementById("keys-single");
  const button = document.getElementById("keys-open");
  if (!list) return; // not on the page that asks to sign in

  try { wanted.checked = localStorage.getItem("kcoord-keys") !== "off"; } catch { /* storage is disabled: on */ }
  wanted.addEventListener("change", () => {
    try { localStorage.setItem("kcoord-keys", wanted.checked ? "on" : "off"); } catch { /* applies to this page only */ }
  });
  button.hidden = false;
  button.addEventListener("click", () => list.showModal());
  list.addEventListener("click", (event) => { if (event.target === list) list.close(); }); // the backdrop

  const rows = () => [...document.querySelectorAll("main tbody tr")].flatMap((row) => {
    const link = row.querySelector("th a[href]") ?? row.querySelector("a[href]");
    return link?.checkVisibility() ? [link] : [];
  });
  const move = (step) => {
    const links = rows();
    const at = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
    const next = at >= 0 ? links[at + step] : step > 0 ? links[0] : links.at(-1);
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  const acts = {
    "/": () => document.getElementById("find-open").click(),
    "?": () => list.showModal(),
    j: () => move(1),
    k: () => move(-1),
  };

  const writes = (element) => element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName);
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!Object.hasOwn(acts, event.key) || !wanted.checked || writes(event.target) || document.querySelector("dialog[open]")) return;
    event.preventDefault(); // the browser's own search
    acts[event.key]();
  });
})();
