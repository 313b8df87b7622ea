// Keeps an open page up to date: refreshes it after a change, and runs its clock.

// Changes within this time share one refresh.
const TOGETHER_MS = 50;

// After this time the page asks again for changes that were refused.
const AGAIN_MS = 3000;

/**
 * Call refresh soon after a change, but not while the page is hidden. feed: the address of the
 * changes. pause: returns the least time between two calls, in milliseconds. reached: called with
 * whether the server can be reached, when the connection breaks and when it is back.
 */
export function keepFresh(feed, refresh, pause, reached = () => {}) {
  let stale = false;
  let timer = 0;
  let last = -Infinity;

  function soon() {
    stale = true;
    if (timer || document.hidden) return;
    timer = setTimeout(async () => {
      stale = false;
      try {
        await refresh();
      } finally {
        timer = 0;
        last = performance.now();
      }
      if (stale) soon();
    }, Math.max(TOGETHER_MS, last + pause() - performance.now()));
  }

  let changes;

  function listen() {
    changes = new EventSource(feed);
    changes.addEventListener("changed", soon);
    changes.addEventListener("open", () => { reached(true); soon(); });
    changes.addEventListener("error", () => {
      reached(false);
      // The browser itself tries again after a lost connection, but not after an HTTP status such
      // as the 502 of a proxy.
      if (changes.readyState === EventSource.CLOSED) setTimeout(listen, AGAIN_MS);
    });
  }

  listen();
  document.addEventListener("visibilitychange", () => { if (!document.hidden && stale) soon(); });
  addEventListener("pagehide", () => changes.close());
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
}

/** Gateway time between two readings. */
export class GatewayClock {
  #read = 0;
  #now = 0;
  #frozen = false;

  /** Take a reading from an element with data-now and data-frozen. */
  set({ dataset }) {
    this.#read = performance.now();
    this.#now = Date.parse(dataset.now);
    this.#frozen = dataset.frozen === "true";
  }

  /** Gateway time now, in milliseconds since 1970. */
  now() {
    return this.#now + (this.#frozen ? 0 : performance.now() - this.#read);
  }

  /** Gateway time of day: hours, minutes and seconds. */
  timeOfDay() {
    return new Date(this.now()).toISOString().slice(11, 19);
  }

  /** Minutes and seconds until a time, or hours and minutes. due: in ISO 8601. */
  left(due) {
    const seconds = Math.max(0, Math.ceil((Date.parse(due) - this.now()) / 1000));
    const minutes = Math.floor(seconds / 60);
    if (minutes >= 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
    return `${minutes}:${String(seconds % 60).padStart(2, "0")}`;
  }
}
