// The rows of a table on the page as a CSV file (RFC 4180): for tables that have no file of the server.
(() => {
  // As in frontend/csv_files.py, which a test compares.
  const FORMULA = /^(?:[\t\n\r]|[\s\x00-\x1f\x7f-\xa0\u200b-\u200f\u2028\u2029\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b])/;

  const text = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    if (node.nodeType !== Node.ELEMENT_NODE) return "";
    if (node.matches("input[type=text], select")) return node.value;
    if (node.matches("button, form, input, [aria-hidden=true], .narrow-only")) return "";
    if (node.matches("time[datetime]")) return node.getAttribute("datetime");
    if (node.matches(".id[title], .elided[title], .owned-ranges[title]")) return node.title;
    const inner = [...node.childNodes].map(text).join("");
    return node.matches("div, p, li, br") ? ` ${inner} ` : inner;
  };
  const cell = (element) => {
    const written = text(element).replace(/\s+/g, " ").trim();
    if (/^[+−-]?\d{1,3}(,\d{3})+$/.test(written) || /^−\d+$/.test(written)) return written.replaceAll(",", "").replace("−", "-");
    if (written === "–") return "";
    const safe = FORMULA.test(written) && !/^[+-]?[\d.]+$/.test(written) ? `'${written}` : written;
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };

  document.addEventListener("click", ({ target }) => {
    const button = target.closest?.("[data-csv]");
    const table = button?.closest(".table-foot").previousElementSibling;
    if (!table) return;
    const lines = [...table.rows].map((row) => [...row.cells].map(cell).join(","));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\r\n"), "\r\n"], { type: "text/csv;charset=utf-8" }));
    const name = [document.querySelector("main h1")?.textContent, button.dataset.csv].filter(Boolean).join("-");
    link.download = `${name.replace(/[^\p{L}\p{N}._-]+/gu, "_").slice(0, 100)}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  });
})();
