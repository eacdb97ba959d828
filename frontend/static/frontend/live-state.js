// Whether what a live page shows is true, as far as the page can know. Pure: times in ms are given, nothing is asked.
(() => {
  const CALM_MS = 2_000; // a connection that is made again sooner was never missed
  const CONNECTING_MS = 5_000;
  const SLOW_MS = 8_000; // a panel that takes longer is waited for, but no longer called live
  const ANSWERED_MS = 7_000;
  const WAITED_MS = 9_000; // a server without its database answers within 8 s

  // Without the stream: whether the server answers requests.
  const answers = (now, link, panel) => panel.answered > link.due
    && (now - panel.answered < ANSWERED_MS || (panel.asked > 0 && now - panel.asked < WAITED_MS));

  // `link`: connected, since (when it was not any more, or the page began), due (when it should have said something
  // again, and did not), before (it was connected once), listening;
  // `panel`: asked (when, 0: not being fetched), failed (why the last fetch did, "" if not), answered (when the server
  // last answered at all). Returns {name, why}; `why` is a sentence for the states in which the panel may be old.
  const stateOf = (now, link, panel) => {
    const gone = now - link.since;
    if (!link.connected && !(link.before && gone < CALM_MS)) {
      if (gone < CONNECTING_MS) return { name: "wait", why: "" };
      if (!answers(now, link, panel)) return { name: "off", why: "The server does not answer." };
      return { name: "stale", why: panel.failed || "The server announces no changes." };
    }
    if (link.connected && !link.listening) return { name: "stale", why: "The server has lost its connection to the database." };
    if (panel.failed) return { name: "stale", why: panel.failed };
    if (panel.asked && now - panel.asked > SLOW_MS) return { name: "stale", why: "The server takes long to answer." };
    return { name: "on", why: "" };
  };

  window.kcoordState = { of: stateOf, SLOW_MS };
})();
