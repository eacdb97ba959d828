// What the admin's theme leaves out for people who use a screen reader: the landmark of the content, names of what
// scrolls, and heads of columns that show none.
document.addEventListener("DOMContentLoaded", () => {
  document.getElementById("main")?.setAttribute("role", "main");
  for (const head of document.querySelectorAll("th")) {
    if (!head.textContent.trim() && !head.querySelector("input, [aria-label]")) {
      const name = document.createElement("span");
      name.className = "sr-only";
      name.textContent = "Actions";
      head.append(name);
    }
  }
  // In a narrow window a value stands after the name of its column, written as in the head of a wide table.
  for (const cell of document.querySelectorAll("[data-label]")) {
    cell.dataset.label = cell.dataset.label.charAt(0).toUpperCase() + cell.dataset.label.slice(1);
  }
  // simplebar makes its regions when the page has been loaded, and gives all of them the same name.
  addEventListener("load", () => {
    const regions = document.querySelectorAll(".simplebar-content-wrapper[role=region]");
    regions.forEach((region, index) => {
      region.setAttribute("aria-label", region.closest("#nav-sidebar") ? "Menu" : `Content ${index + 1}, scrollable`);
    });
  });
});
