// A list with boxes: which are ticked, and the bar that acts on them. Only rows that are shown stay ticked.
(() => {
  const panel = document.getElementById("panel");
  const bar = document.getElementById("bulk");
  const count = bar.querySelector(".bulk-count");
  const compare = document.getElementById("select-compare");
  const { one = "group", many = "groups" } = bar.dataset;
  const boxes = () => [...panel.querySelectorAll("input[form=bulk]")];
  let ticked = new Set();

  const show = () => {
    const all = boxes();
    ticked = new Set(all.filter((box) => box.checked).map((box) => box.value));
    const whole = document.getElementById("select-all");
    if (whole) {
      whole.checked = ticked.size > 0 && ticked.size === all.length;
      whole.indeterminate = ticked.size > 0 && ticked.size < all.length;
    }
    bar.toggleAttribute("data-some", ticked.size > 0);
    if (compare) compare.disabled = ticked.size > Number(compare.dataset.most);
    const text = ticked.size === 1 ? `1 ${one} selected` : `${ticked.size || "No"} ${many} selected`;
    if (count.textContent !== text) count.textContent = text;
  };
  const tickAll = (checked) => {
    for (const box of boxes()) box.checked = checked;
    show();
  };

  panel.addEventListener("change", ({ target }) => {
    if (target.id === "select-all") tickAll(target.checked);
    else if (target.form === bar) show();
  });
  document.getElementById("select-none").addEventListener("click", () => {
    tickAll(false);
    document.getElementById("select-all")?.focus();
  });
  // The panel is fetched again every few seconds, and comes without ticks.
  document.addEventListener("htmx:after:swap", () => {
    for (const box of boxes()) box.checked = ticked.has(box.value);
    show();
  });
  // Filters change the address without loading the page: the way back leads to the list as it is shown.
  bar.addEventListener("submit", () => { if (bar.elements.view) bar.elements.view.value = location.search.slice(1); });
  // After a step back in the history the browser has restored the ticks.
  addEventListener("pageshow", show);
  show();
})();
