// Says the values at one instant on all plots of a page: under the mouse or a finger, or by the arrow keys in a plot.
// The instant is that of a step, of which a line has the largest value; the texts are the server's.
(() => {
  const zone = document.documentElement.dataset.zone || "UTC";
  const writes = (timeZone, form) => new Intl.DateTimeFormat("en-GB", { timeZone, hourCycle: "h23", day: "numeric", month: "short", ...form });
  const day = writes("UTC", { year: "numeric" });
  const minute = writes(zone, { hour: "2-digit", minute: "2-digit" });
  const second = writes(zone, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  let at = null;

  const numbers = (chart) => ["first", "last", "step"].map((name) => Number(chart.dataset[name]));
  const time = (chart, from, step) => {
    if ("days" in chart.dataset) return day.format(from);
    const clock = step < 60_000 ? second : minute;
    return `${clock.format(from)} to ${clock.format(from + step).split(", ").at(-1)}`;
  };

  const values = (chart, slot) => {
    const lines = [...chart.querySelectorAll("[data-values]")];
    return lines.map((line) => {
      const text = line.dataset.values.split("|")[slot];
      const said = text ? `${"most" in chart.dataset ? "at most " : ""}${text}` : "unknown";
      return lines.length > 1 ? `${line.dataset.name}: ${said}` : said;
    }).join(", ");
  };

  const draw = (chart) => {
    const [first, last, step] = numbers(chart);
    const [line, read, slider] = [".chart-cross", ".chart-read", ".chart-at"].map((part) => chart.querySelector(part));
    if (at === null || at < first || at >= last) {
      line.removeAttribute("x1");
      read.textContent = "";
      return;
    }
    const slot = Math.floor((at - first) / step);
    const from = first + slot * step;
    const x = (1_000 * (Math.min(from + step / 2, last) - first)) / (last - first);
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    const reach = Math.max((500 * step) / (last - first), 6);
    const marks = [...chart.querySelectorAll(".chart-mark")].filter((mark) => Math.abs(mark.getAttribute("x1") - x) <= reach);
    const said = [`${time(chart, from, step)}: ${values(chart, slot)}`, ...marks.map((mark) => mark.textContent)];
    read.replaceChildren(...said.map((text) => Object.assign(document.createElement("span"), { textContent: text })));
    read.classList.toggle("left", x > 500);
    slider.value = slot;
    slider.setAttribute("aria-valuetext", said.join("; "));
  };

  const show = (instant) => {
    if (instant === null && at === null) return;
    at = instant;
    for (const chart of document.querySelectorAll(".chart")) draw(chart);
  };

  const point = (event) => {
    const frame = event.target.closest?.(".chart-frame");
    if (!frame) return event.type === "pointerdown" || event.pointerType === "mouse" ? show(null) : undefined;
    const [first, last] = numbers(frame.closest(".chart"));
    const box = frame.getBoundingClientRect();
    show(first + Math.min(Math.max((event.clientX - box.left) / box.width, 0), 0.9999) * (last - first));
  };
  const slide = ({ target }) => {
    if (!target.matches?.(".chart-at")) return;
    const [first, , step] = numbers(target.closest(".chart"));
    show(first + Number(target.value) * step);
  };

  document.addEventListener("pointermove", point);
  document.addEventListener("pointerdown", point);
  document.documentElement.addEventListener("mouseleave", () => show(null));
  document.addEventListener("input", slide);
  document.addEventListener("focusin", slide);
  document.addEventListener("focusout", (event) => { if (event.target.matches(".chart-at")) show(null); });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") show(null); });
  document.addEventListener("htmx:after:swap", () => { // the new panel says nothing yet, and its span has moved
    show(at);
    if (at !== null) slide({ target: document.activeElement });
  });
})();
