// Advances `<time data-at="ms">` between two updates from the server, in the words of frontend/wording.py (`ago`, `lasting`, `Due`).
// Based on the server's clock: the panel states the server's time, the browser adds the time that has passed since.
// In a panel that could not be fetched any more (live.js) time stands still: nobody knows what has happened since.
(() => {
  let offset = 0;
  let stated = 0;

  const span = (milliseconds) => {
    const length = Math.abs(milliseconds);
    if (length < 60_000) return `${Math.floor(length / 1_000)} s`;
    if (length < 3_600_000) return `${Math.floor(length / 60_000)} min`;
    if (length < 172_800_000) return `${Math.floor(length / 3_600_000)} h`;
    return `${Math.floor(length / 86_400_000).toLocaleString("en-US")} days`;
  };

  const lasting = (since, now) => `for ${span(Math.max(now - since, 0))}`;

  const ago = (at, now) => {
    const distance = now - at;
    if (Math.abs(distance) < 1_000) return "now";
    return distance > 0 ? `${span(distance)} ago` : `in ${span(distance)}`;
  };

  const tick = () => {
    if (document.hidden) return;
    const now = stated && document.querySelector("#panel.past") ? stated : Date.now() + offset;
    for (const time of document.querySelectorAll("time[data-at]")) {
      const text = ("lasting" in time.dataset ? lasting : ago)(Number(time.dataset.at), now);
      if (time.textContent !== text) time.textContent = text;
    }
    for (const words of document.querySelectorAll("[data-due]")) {
      const isOverdue = now - Number(words.dataset.due) >= 1_000;
      if (isOverdue && words.textContent !== words.dataset.overdue) words.textContent = words.dataset.overdue;
    }
  };

  const synchronise = () => {
    const now = document.querySelector("[data-now]")?.dataset.now;
    stated = Number(now ?? 0);
    if (stated) offset = stated - Date.now();
    tick();
  };

  synchronise();
  document.addEventListener("htmx:after:swap", synchronise);
  document.addEventListener("visibilitychange", tick);
  setInterval(tick, 1_000);
})();
