// One connection to the server's stream of changes (frontend/live.py), made again whenever it is lost. It runs in the
// worker that all pages of a browser share, or in one of the pages.
//
// `tell` gets {type: "beat", listening} every few seconds, {type: "changed", groups, nodes}, and {type: "lost", silent,
// refused}: `silent` if the server said nothing for too long, `refused` if it answered with something else.
self.KcoordStream = class {
  static SILENCE_MS = 7_500; // the server says something every 3 s
  static FIRST_PAUSE_MS = 500;
  static LONGEST_PAUSE_MS = 5_000;

  #url;
  #tell;
  #source = null;
  #timer = null;
  #pause = 0;
  #runs = false;

  constructor(url, tell) {
    this.#url = url;
    this.#tell = tell;
    this.last = null; // the last beat, while the connection stands
  }

  start() {
    if (this.#runs) return;
    this.#runs = true;
    this.#pause = this.constructor.FIRST_PAUSE_MS;
    this.#connect();
  }

  stop() {
    this.#runs = false;
    this.#close();
  }

  #connect() {
    const source = this.#source = new EventSource(this.#url);
    this.#heard();
    source.addEventListener("beat", (event) => {
      this.#heard();
      this.#pause = this.constructor.FIRST_PAUSE_MS;
      this.last = { type: "beat", ...JSON.parse(event.data) };
      this.#tell(this.last);
    });
    source.addEventListener("changed", (event) => {
      this.#heard();
      this.#tell({ type: "changed", ...JSON.parse(event.data) });
    });
    source.addEventListener("error", () => this.#lose({ silent: false, refused: source.readyState === EventSource.CLOSED }));
  }

  #heard() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#lose({ silent: true, refused: false }), this.constructor.SILENCE_MS);
  }

  // Not left to EventSource, which waits for ever for an answer and does not come back after a refusal.
  #lose(how) {
    this.#close();
    this.#tell({ type: "lost", ...how });
    this.#timer = setTimeout(() => this.#connect(), this.#pause * (0.85 + 0.3 * Math.random()));
    this.#pause = Math.min(2 * this.#pause, this.constructor.LONGEST_PAUSE_MS);
  }

  #close() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
    this.last = null;
  }
};
