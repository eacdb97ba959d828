// How a page takes part in the one stream of its browser: through the shared worker; in a browser without it, as on Android,
// one visible page leads by a lock and passes on what it hears; without locks (plain http) it has a stream of its own.
//
// kcoordLink(url, script, tell) returns {show, close}: `show(visible)` says whether anybody looks at the page. Only
// then `tell` gets what stream.js says.
(() => {
  const NAME = "kcoord-live-1"; // the number changes with the messages: pages of an older release have their own worker

  const shared = (url, script, tell) => {
    const { port } = new SharedWorker(script, { name: NAME });
    port.onmessage = ({ data }) => tell(data);
    return {
      show: (visible) => port.postMessage({ type: "here", url, visible }),
      close: () => { port.postMessage({ type: "bye" }); port.close(); },
    };
  };

  const led = (url, tell) => {
    const others = new BroadcastChannel(NAME);
    let stream = null; // while this page leads
    let leave = null; // stops leading, or waiting for it

    others.onmessage = ({ data }) => {
      if (!leave) return;
      if (data.type !== "hello") tell(data);
      else if (stream?.last) others.postMessage(stream.last);
    };

    const join = () => {
      const giveUp = new AbortController();
      const done = new Promise((resolve) => { leave = () => { giveUp.abort(); stream?.stop(); stream = null; leave = null; resolve(); }; });
      const lead = () => {
        if (giveUp.signal.aborted) return undefined;
        stream = new KcoordStream(url, (message) => { tell(message); others.postMessage(message); });
        stream.start();
        return done;
      };
      navigator.locks.request(NAME, { signal: giveUp.signal }, lead).catch(() => { /* hidden before it was its turn */ });
      others.postMessage({ type: "hello" });
    };

    return {
      show: (visible) => { if (visible && !leave) join(); else if (!visible) leave?.(); },
      close: () => { leave?.(); others.close(); },
    };
  };

  const own = (url, tell) => {
    const stream = new KcoordStream(url, tell);
    return { show: (visible) => { if (visible) stream.start(); else stream.stop(); }, close: () => stream.stop() };
  };

  window.kcoordLink = (url, script, tell) => {
    if (window.SharedWorker) return shared(url, script, tell);
    return navigator.locks && window.BroadcastChannel ? led(url, tell) : own(url, tell);
  };
})();
