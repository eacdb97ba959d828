// Chooses a part of the time that all plots of a page show: drag over a plot, or move the two sliders with the keyboard.
// The chosen part is marked on every plot; zooming in is a new address, so the way back is the browser's.
(() => {
  const iso = (at) => new Date(at).toISOString();
  const zone = document.documentElement.dataset.zone || "UTC";
  const clock = new Intl.DateTimeFormat("en-GB", {
    timeZone: zone, day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
  });

  const setUp = () => {
    const brush = document.querySelector("[data-brush]");
    const charts = [...document.querySelectorAll(".chart-area-box")];
    if (!brush || !charts.length || !brush.hidden) return;
    brush.hidden = false;
    const first = Number(brush.dataset.first);
    const last = Number(brush.dataset.last);
    const from = brush.querySelector("#brush-from");
    const to = brush.querySelector("#brush-to");
    const text = brush.querySelector("output");
    const zoom = brush.querySelector("[data-zoom]");
    const most = Number(from.max);
    const at = (slider) => Math.round(first + ((last - first) * Number(slider.value)) / most);

    const show = () => {
      const whole = Number(from.value) === 0 && Number(to.value) === most;
      const [begins, ends] = [clock.format(at(from)), clock.format(at(to))];
      from.setAttribute("aria-valuetext", begins);
      to.setAttribute("aria-valuetext", ends);
      text.textContent = whole ? "" : `${begins} to ${ends}`;
      zoom.disabled = whole || at(to) - at(from) < 1_000;
      for (const chart of charts) {
        const mark = chart.querySelector(".chart-brush");
        mark.setAttribute("x", String((1_000 * Number(from.value)) / most));
        mark.setAttribute("width", whole ? "0" : String((1_000 * (Number(to.value) - Number(from.value))) / most));
      }
    };

    const go = () => {
      if (zoom.disabled) return;
      const address = new URL(location.href);
      for (const name of ["span", "before"]) address.searchParams.delete(name);
      address.searchParams.set("from", iso(at(from)));
      address.searchParams.set("to", iso(at(to)));
      location.assign(address);
    };

    // The sliders do not pass each other.
    from.addEventListener("input", () => { if (Number(from.value) >= Number(to.value)) from.value = String(Number(to.value) - 1); show(); });
    to.addEventListener("input", () => { if (Number(to.value) <= Number(from.value)) to.value = String(Number(from.value) + 1); show(); });
    for (const slider of [from, to]) slider.addEventListener("keydown", (event) => { if (event.key === "Enter") go(); });
    zoom.addEventListener("click", go);

    for (const chart of charts) {
      const frame = chart.closest(".chart-frame");
      const place = (event) => {
        const box = frame.getBoundingClientRect();
        return Math.round(most * Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1));
      };
      let began = null;
      frame.addEventListener("pointerdown", (event) => {
        if (event.button !== 0 || event.pointerType === "touch") return; // a finger scrolls; there are the sliders
        began = place(event);
        frame.setPointerCapture(event.pointerId);
        event.preventDefault();
      });
      frame.addEventListener("pointermove", (event) => {
        if (began === null) return;
        const now = place(event);
        from.value = String(Math.min(began, now));
        to.value = String(Math.max(began, now));
        show();
      });
      const end = (event) => {
        if (began === null) return;
        const dragged = Math.abs(place(event) - began) > 1;
        began = null;
        if (dragged && event.type === "pointerup") go();
        else { from.value = "0"; to.value = String(most); show(); }
      };
      frame.addEventListener("pointerup", end);
      frame.addEventListener("pointercancel", end);
    }
    show();
  };

  setUp();
  document.addEventListener("htmx:after:swap", setUp);
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
})();
