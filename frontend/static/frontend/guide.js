// The guided reset: a tick of a topic ticks its partitions, a typed instant is the chosen one, holds count down.
(() => {
  const state = (topic) => {
    const whole = topic.querySelector("input[name=t]");
    const boxes = [...topic.querySelectorAll("input[name=p]")];
    if (!boxes.length) return;
    const ticked = boxes.filter((box) => box.checked).length;
    whole.checked = ticked === boxes.length;
    whole.indeterminate = ticked > 0 && ticked < boxes.length;
  };
  document.querySelectorAll("[data-topic]").forEach(state);

  document.addEventListener("change", ({ target }) => {
    const topic = target.closest?.("[data-topic]");
    if (topic && target.name === "t") for (const box of topic.querySelectorAll("input[name=p]")) box.checked = target.checked;
    if (topic) state(topic);
  });

  document.addEventListener("input", ({ target }) => {
    if (target.matches("input.instant")) target.closest(".when")?.querySelector("input[type=radio]")?.click();
  });

  // By the server's clock, which the page states.
  const offset = Number(document.querySelector("[data-now]")?.dataset.now ?? Date.now()) - Date.now();
  const two = (value) => String(value).padStart(2, "0");
  const tick = () => {
    for (const time of document.querySelectorAll("time[data-until]")) {
      const left = Math.max(0, Math.ceil((Number(time.dataset.until) - Date.now() - offset) / 1_000));
      const hours = Math.floor(left / 3_600);
      const text = hours ? `${hours}:${two(Math.floor(left / 60) % 60)}:${two(left % 60)}` : `${Math.floor(left / 60)}:${two(left % 60)}`;
      if (time.textContent !== text) time.textContent = text;
      time.closest(".hold-state")?.toggleAttribute("data-over", left === 0);
    }
  };
  tick();
  setInterval(tick, 1_000);
})();
