// The worker that all pages of a browser share: they have one stream together. Six of their own, each with a connection
// that never ends, would be all that a browser opens to a server, and no other page could be loaded.
importScripts("stream.js");

const FORGET_MS = 150_000; // a page says every 20 s that it is there, a hidden one perhaps only once a minute

const pages = new Map(); // by port: whether the page is visible, and when it last said so
let stream = null;

const tell = (message) => { for (const [port, page] of pages) if (page.visible) port.postMessage(message); };

// No page is looked at: nobody needs the stream.
const update = () => {
  if ([...pages.values()].some((page) => page.visible)) stream?.start();
  else stream?.stop();
};

self.onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data }) => {
    if (data.type === "bye") {
      pages.delete(port);
    } else {
      stream ??= new KcoordStream(data.url, tell);
      const seen = pages.get(port)?.visible;
      pages.set(port, { visible: data.visible, at: Date.now() });
      if (data.visible && !seen && stream.last) port.postMessage(stream.last);
    }
    update();
  };
};

setInterval(() => {
  for (const [port, page] of pages) if (Date.now() - page.at > FORGET_MS) pages.delete(port);
  update();
}, FORGET_MS / 5);
