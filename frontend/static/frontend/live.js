// Live pages. The server says *that* something changed (live-link.js); the page then fetches the panel it was rendered
// with and morphs it in, so focus, selection, scroll and open details stay. A lost event is repaired: after every
// (re)connection and every few seconds the panel is fetched anyway. The mark in the header says whether that works; if
// not, a banner says why and as of when the panel is, and the panel is grey.
(() => {
  const panel = document.getElementById("panel");
  const status = document.getElementById("live-status");
  const pause = document.getElementById("live-pause");
  const banner = document.getElementById("live-banner");
  if (!status) return;

  const LIMIT_MS = 20_000; // of a fetch of the panel; a statement of the server may take 15 s
  const AGAIN_MS = 5_000; // how often a panel is fetched that could not be
  const SILENCE_MS = 10_000; // of the link, which notices the silence of the server itself
  const DEAD_MS = 20_000; // then the link is made again: its worker may have ended
  const HERE_MS = 20_000;
  const BEAT_MS = 3_500; // the server says something that often, at least
  const TICK_MS = 500;

  let ended = false; // signed out, here or in another tab
  let paused = false;
  let stale = true; // something may have changed that this page has not fetched
  let fetching = 0;
  let last = 0; // when the panel was last asked for
  let fetched = Date.now(); // when it was last fetched
  let trouble = 0; // since when the page is not known to be true; 0: it is
  let later = null;
  let heard = Date.now(); // when the link last said something
  const link = { connected: false, before: false, since: Date.now(), due: Date.now(), listening: true };
  const request = { asked: 0, failed: "", answered: Date.now() };

  // What the mark says.

  const words = { wait: "Connecting", on: "Live", off: "Offline", stale: "Stale", paused: "Paused" };
  const asOf = status.querySelector(".live-as-of");
  const write = (element, text) => { if (element.textContent !== text) element.textContent = text; };
  const said = (name, otherwise) => Number(panel.querySelector(`[data-${name}]`)?.dataset[name] || otherwise);
  const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium", timeZone: document.documentElement.dataset.zone || "UTC" });

  const show = () => {
    const now = Date.now();
    const state = paused ? { name: "paused", why: "" } : kcoordState.of(now, link, request);
    const old = state.name === "off" || state.name === "stale";
    if (state.name === "on") trouble = 0;
    else if (old) trouble ||= now;
    const at = `as of ${clock.format(said("now", fetched))}`;
    status.dataset.state = state.name;
    write(status.querySelector(".live-text"), words[state.name]);
    write(asOf, old ? ` ${at}` : "");
    if (old) write(banner, `${state.why} This page is ${at}; it updates again by itself.`);
    banner.hidden = !old;
    panel.classList.toggle("past", old && fetched < trouble);
    pause.hidden = false;
    write(pause, paused ? "Resume" : "Pause");
    pause.setAttribute("aria-pressed", String(paused));
    return old;
  };

  // Fetching the panel.

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

  const ofPanel = (event) => panel.contains(event.detail.ctx?.sourceElement);
  const failure = (code) => (code === 503 ? "The server cannot use its database." : `The server could not make this page (${code}).`);

  document.addEventListener("htmx:config:request", (event) => {
    if (ofPanel(event) && event.detail.ctx.request.method === "GET") event.detail.ctx.request.timeout = LIMIT_MS;
  });
  document.addEventListener("htmx:before:request", (event) => {
    if (!ofPanel(event)) return;
    fetching += 1;
    request.asked ||= Date.now();
  });
  // What the page shows is worth more than a message that the server has nothing newer.
  document.addEventListener("htmx:response:error", (event) => {
    const { ctx } = event.detail;
    if (ofPanel(event) && ctx.response.status >= 500) ctx.swap = "none";
  });
  document.addEventListener("htmx:error", (event) => {
    if (ofPanel(event)) request.failed = "The server does not answer.";
  });
  // Changes during a request of the panel, or of a form in it, are fetched afterwards.
  document.addEventListener("htmx:finally:request", (event) => {
    if (!ofPanel(event)) return;
    fetching = Math.max(fetching - 1, 0);
    if (fetching === 0) request.asked = 0;
    const { ctx } = event.detail;
    if (ctx.status === "swapped") {
      request.answered = Date.now();
      request.failed = ctx.response.status >= 500 ? failure(ctx.response.status) : "";
      if (!request.failed) fetched = Date.now();
    }
    show();
    if (stale && !request.failed) refresh();
  });

  // The link.

  const address = new URL(status.dataset.stream, location.href);
  const group = address.searchParams.get("group");
  const nodes = address.searchParams.get("of") === "nodes";
  const concerns = (message) => {
    if (nodes) return message.nodes;
    if (message.groups === null) return true;
    return group === null ? message.groups.length > 0 : message.groups.includes(group);
  };

  const lose = (since, due) => { Object.assign(link, { connected: false, since, due }); };
  const tell = (message) => {
    if (ended || paused) return;
    const now = Date.now();
    if (message.type === "lost") {
      if (link.connected && message.silent) lose(heard, heard + BEAT_MS);
      else if (link.connected) lose(now, now);
      // The session may have ended: then a request of the panel leads to the sign-in.
      if (message.refused) refresh();
    } else if (message.type === "changed") {
      if (concerns(message)) refresh();
    } else {
      const news = !link.connected || link.listening !== message.listening;
      // A request that the server did not answer before is not answered by one that came back.
      if (!link.connected && request.asked && now - request.asked > kcoordState.SLOW_MS) htmx.trigger(panel, "htmx:abort");
      Object.assign(link, { connected: true, before: true, listening: message.listening });
      if (news) refresh();
    }
    heard = now;
    show();
  };

  let joined = null;
  const join = () => {
    joined?.close();
    heard = Date.now();
    joined = kcoordLink(address.pathname, status.dataset.worker, tell);
    joined.show(true);
  };
  const leave = () => { joined?.show(false); };
  // A hidden or paused page needs no stream. It connects again when it is looked at, and says so.
  const look = () => {
    if (ended) return;
    if (document.hidden || paused) {
      leave();
      return;
    }
    heard = Date.now();
    lose(heard, heard);
    link.before = false;
    if (joined) joined.show(true);
    else join();
    if (stale) refresh();
    show();
  };

  // After a sign-out every request would be refused (401): this page, and those in other tabs, must not ask any more.
  const end = () => {
    ended = true;
    clearTimeout(later);
    htmx.trigger(panel, "htmx:abort");
    joined?.close();
  };
  const tabs = new BroadcastChannel("kcoord-sign-out");
  tabs.addEventListener("message", () => { end(); setTimeout(() => location.reload(), 1_000); }); // to the sign-in
  document.querySelector("form.sign-out")?.addEventListener("submit", () => { end(); tabs.postMessage("signed out"); });

  pause.addEventListener("click", () => { paused = !paused; stale = true; look(); show(); });
  document.addEventListener("visibilitychange", look);
  addEventListener("pagehide", () => { joined?.close(); joined = null; });
  addEventListener("pageshow", (event) => { if (event.persisted) { stale = true; look(); } });

  const tick = () => {
    if (ended || paused || document.hidden || !joined) return;
    const now = Date.now();
    if (link.connected && now - heard > SILENCE_MS) lose(heard, heard + BEAT_MS);
    if (now - heard > DEAD_MS) join();
    const due = show() ? AGAIN_MS : said("every", 15_000); // heartbeats and commits send no event
    if (now - last > due) refresh();
  };
  setInterval(tick, TICK_MS);
  setInterval(() => { if (!ended && !paused && !document.hidden) joined?.show(true); }, HERE_MS);
  last = Date.now();
  look();
})();
