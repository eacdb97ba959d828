// Runs before the first paint, so that a chosen colour scheme does not flash. Auto follows the system.
(() => {
  const names = { "": "Auto", light: "Light", dark: "Dark" };
  const order = ["", "light", "dark"];
  let chosen = "";
  try { chosen = localStorage.getItem("kcoord-theme") ?? ""; } catch { /* storage is disabled: Auto */ }
  if (!(chosen in names)) chosen = "";

  const show = () => {
    if (chosen) document.documentElement.dataset.theme = chosen;
    else delete document.documentElement.dataset.theme;
    const button = document.getElementById("theme");
    if (!button) return;
    button.textContent = names[chosen];
    button.setAttribute("aria-label", `${names[chosen]}: colours ${chosen ? "of every page" : "of the system"}`);
  };

  show();
  document.addEventListener("DOMContentLoaded", () => {
    show();
    document.getElementById("theme")?.addEventListener("click", () => {
      chosen = order[(order.indexOf(chosen) + 1) % order.length];
      try { localStorage.setItem("kcoord-theme", chosen); } catch { /* applies to this page only */ }
      show();
    });
  });
})();
