// Runs before the first paint, so that what was chosen does not flash: colours (Auto follows the system), and how close rows are.
(() => {
  const choices = {
    theme: { "": ["Auto", "colours of the system"], light: ["Light", "colours of every page"], dark: ["Dark", "colours of every page"] },
    density: { "": ["Comfortable rows", "in all tables"], compact: ["Compact rows", "in all tables"] },
  };
  for (const [what, names] of Object.entries(choices)) {
    let chosen = "";
    try { chosen = localStorage.getItem(`kcoord-${what}`) ?? ""; } catch { /* storage is disabled: the usual one */ }
    if (!(chosen in names)) chosen = "";

    const show = () => {
      if (chosen) document.documentElement.dataset[what] = chosen;
      else delete document.documentElement.dataset[what];
      const button = document.getElementById(what);
      if (!button) return;
      button.textContent = names[chosen][0];
      button.setAttribute("aria-label", names[chosen].join(": "));
    };

    show();
    document.addEventListener("DOMContentLoaded", () => {
      show();
      document.getElementById(what)?.addEventListener("click", () => {
        const order = Object.keys(names);
        chosen = order[(order.indexOf(chosen) + 1) % order.length];
        try { localStorage.setItem(`kcoord-${what}`, chosen); } catch { /* applies to this page only */ }
        show();
      });
    });
  }
})();
