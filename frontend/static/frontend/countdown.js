// How long somebody has to wait before the next sign-in, second by second. Only the end of it is said to those who hear
// the page: what ticks is hidden from them. Without scripts the page says how long the wait was when it was sent.
(() => {
  const shown = document.getElementById("countdown");
  const told = document.getElementById("countdown-told");
  const until = Date.now() + Number(shown.dataset.seconds) * 1_000;
  let timer = 0;

  const tick = () => {
    const left = Math.ceil((until - Date.now()) / 1_000);
    const text = left > 0 ? `Try again in ${left} ${left === 1 ? "second" : "seconds"}.` : "You can try again now.";
    if (shown.textContent !== text) shown.textContent = text;
    if (left > 0) return;
    told.textContent = text;
    clearInterval(timer);
  };
  timer = setInterval(tick, 250);
})();
