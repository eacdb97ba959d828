// Live pages. The server says *that* something changed (server-sent events, htmx's extension holds the connection
// and closes it in a hidden tab); the page then fetches the panel it was rendered with and morphs it in, so focus,
// selection, scroll and open details stay. No data travels in events, and a lost one is repaired: after every
// (re)connection and every few seconds the panel is fetched anyway.
(() => {
  const panel = document.getElementById("panel");
  const stream = document.getElementById("stream");
  const status = document.getElementById("live-status");
  const pause = document.getElementById("live-pause");

  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button || !navigator.clipboard) return;
    await navigator.clipboard.writeText(button.dataset.copy);
    button.dataset.copied = "";
    setTimeout(() => delete button.dataset.copied, 1_500);
  });

  // Members keep their colours while the page is open: the page sends back the ones the server assigned.
  document.addEventListener("htmx:config:request", (event) => {
    const colours = panel.querySelector("[data-colours]")?.dataset.colours;
    if (colours) event.detail.ctx.request.headers["Kcoord-Colours"] = colours;
  });

  // An empty search is left out of the address.
  document.addEventListener("htmx:config:request", (event) => {
    const { body, method } = event.detail.ctx.request;
    if (method !== "GET" || !body) return;
    for (const [name, value] of [...body]) if (value === "") body.delete(name);
  });

  // A partition that changes its owner flashes once, so that moves are visible.
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  htmx.registerExtension("kcoord-moved", {
    htmx_before_morph_attr: (element, { attrName }) => {
      if (attrName === "data-owner" && !still.matches) {
        const ring = { transform: "scale(1.25)", boxShadow: "0 0 0 3px currentColor", zIndex: 1 };
        element.animate([ring, { transform: "none", boxShadow: "0 0 0 0 transparent" }], { duration: 1_200, easing: "ease-out" });
      }
    },
  });

  if (!stream || !status || !pause) return;

  let ended = false; // signed out, here or in another tab
  let paused = false;
  let stale = true; // something may have changed that this page has not fetched
  let fetching = 0;
  let last = 0;
  let later = null;
  let connected = null; // not tried yet

  const words = { wait: "Connecting", on: "Live", off: "Offline", paused: "Paused" };
  const show = () => {
    const state = paused ? "paused" : connected === null ? "wait" : connected ? "on" : "off";
    if (status.dataset.state !== state || status.lastElementChild.textContent !== words[state]) {
      status.dataset.state = state;
      status.lastElementChild.textContent = words[state];
    }
    pause.hidden = false;
    pause.textContent = paused ? "Resume" : "Pause";
    pause.setAttribute("aria-pressed", String(paused));
  };

  const said = (name, otherwise) => Number(panel.querySelector(`[data-${name}]`)?.dataset[name] ?? otherwise);

  // Not more often than the panel states: fetching a large one for every change would cost too much.
  const refresh = () => {
    stale = true;
    if (ended || paused || document.hidden || fetching > 0) return;
    const wait = last + said("gap", 250) - Date.now();
    if (wait > 0) {
      later ??= setTimeout(() => { later = null; refresh(); }, wait);
      return;
    }
    last = Date.now();
    stale = false;
    htmx.trigger(panel, "refresh");
  };

  // A request of the panel or of a form in it: changes in the meantime are fetched afterwards.
  const ofPanel = (event) => panel.contains(event.detail.ctx?.sourceElement);
  document.addEventListener("htmx:before:request", (event) => { if (ofPanel(event)) fetching += 1; });
  document.addEventListener("htmx:finally:request", (event) => {
    if (!ofPanel(event)) return;
    fetching = Math.max(fetching - 1, 0);
    if (stale) refresh();
  });

  // After a sign-out every request would be refused (401): this page, and those in other tabs, must not ask any more.
  const end = () => {
    ended = true;
    clearTimeout(later);
    htmx.trigger(panel, "htmx:abort");
    stream.remove(); // closes the stream
  };
  const tabs = new BroadcastChannel("kcoord-sign-out");
  tabs.addEventListener("message", () => { end(); setTimeout(() => location.reload(), 1_000); }); // to the sign-in
  document.querySelector("form.sign-out")?.addEventListener("submit", () => { end(); tabs.postMessage("signed out"); });
  stream.addEventListener("htmx:sse:before:connection", (event) => { if (ended) event.preventDefault(); });
  // The session ended in another way: one request of the panel leads to the sign-in.
  stream.addEventListener("htmx:sse:error", (event) => { if (event.detail.status === 401) { stream.remove(); paused = false; refresh(); } });

  stream.addEventListener("htmx:sse:after:connection", () => { connected = true; show(); refresh(); });
  for (const name of ["htmx:sse:error", "htmx:sse:close", "htmx:error"]) {
    stream.addEventListener(name, () => { connected = false; show(); });
  }
  for (const name of ["group", "groups", "nodes"]) stream.addEventListener(name, refresh);

  pause.addEventListener("click", () => { paused = !paused; show(); if (!paused) refresh(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && stale) refresh(); });
  // Heartbeats and commits send no event, so the panel is also fetched periodically, as often as it states.
  const look = () => {
    if (ended) return;
    if (document.hidden) stale = true;
    else {
      if (!connected) htmx.trigger(stream, "reconnect"); // does nothing while a connection is open or being opened
      refresh();
    }
    setTimeout(look, said("every", 15_000));
  };
  setTimeout(look, said("every", 15_000));
  show();
})();
