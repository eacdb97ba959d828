// What every page has: keys, menus, copying, and what htmx is told. Live pages have live.js besides.
(() => {
  const panel = document.getElementById("panel");

  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button || !navigator.clipboard) return;
    await navigator.clipboard.writeText(button.dataset.copy);
    button.dataset.copied = "";
    setTimeout(() => delete button.dataset.copied, 1_500);
  });

  // A click elsewhere, Escape, or moving on with the keyboard closes a menu.
  const menus = () => document.querySelectorAll("details.actions[open]");
  document.addEventListener("click", (event) => { for (const menu of menus()) if (!menu.contains(event.target)) menu.open = false; });
  document.addEventListener("focusin", (event) => { for (const menu of menus()) if (!menu.contains(event.target)) menu.open = false; });
  const closeMenus = () => {
    for (const menu of menus()) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  };

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") closeMenus();
  });

  // Members keep their colours while the page is open: the page sends back the ones the server assigned.
  document.addEventListener("htmx:config:request", (event) => {
    const colours = panel.querySelector("[data-colours]")?.dataset.colours;
    if (colours) event.detail.ctx.request.headers["Kcoord-Colours"] = colours;
  });

  // An empty search is left out of the address.
  document.addEventListener("htmx:config:request", (event) => {
    const { body, method } = event.detail.ctx.request;
    if (method !== "GET" || !body) return;
    for (const [name, value] of [...body]) if (value === "") body.delete(name);
  });

  // A partition that changes its owner flashes once, so that moves are visible.
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  htmx.registerExtension("kcoord-moved", {
    htmx_before_morph_attr: (element, { attrName }) => {
      if (attrName === "data-owner" && !still.matches) {
        const ring = { transform: "scale(1.25)", boxShadow: "0 0 0 3px currentColor", zIndex: 1 };
        element.animate([ring, { transform: "none", boxShadow: "0 0 0 0 transparent" }], { duration: 1_200, easing: "ease-out" });
      }
    },
  });
})();
