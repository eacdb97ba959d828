// The page of an outage asks for itself until the answer is another. Unlike a reload, that survives a server that is
// gone as well. Without scripts the page has a <meta http-equiv="refresh">.
(() => {
  const note = document.getElementById("retry");
  const pause = Number(note.dataset.seconds) * 1_000;
  const words = note.textContent;

  const retry = async () => {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(10_000) });
      if (answer.status !== 503) {
        location.reload();
        return;
      }
      note.textContent = words;
    } catch {
      note.textContent = `The server does not answer either. ${words}`;
    }
    setTimeout(retry, pause);
  };
  setTimeout(retry, pause);
})();
