// Keeps an open page up to date: refreshes it after a change, and runs its clock.

// Changes within this time share one refresh.
const DEBOUNCE_MS = 50;

// After this time the page connects to the feed again, if an HTTP status refused it.
const RECONNECT_MS = 3000;

/**
 * Call refresh soon after a change. A hidden page has no feed: browsers have six connections to a
 * server. feed: the address of the changes. pause: returns the least time between two calls, in
 * milliseconds. onConnection: called with whether the server can be reached, when the connection
 * breaks and when it is back.
 */
export function keepFresh(feed, refresh, pause, onConnection = () => {}) {
  let isStale = false;
  let timer = 0;
  let lastRefresh = -Infinity;

  function scheduleRefresh() {
    isStale = true;
    if (timer) return;
    timer = setTimeout(async () => {
      isStale = false;
      try {
        await refresh();
      } finally {
        timer = 0;
        lastRefresh = performance.now();
      }
      if (isStale) scheduleRefresh();
    }, Math.max(DEBOUNCE_MS, lastRefresh + pause() - performance.now()));
  }

  let changes;
  let reconnection = 0;

  function connect() {
    changes = new EventSource(feed);
    changes.addEventListener("changed", scheduleRefresh);
    changes.addEventListener("open", () => { onConnection(true); scheduleRefresh(); });
    changes.addEventListener("error", () => {
      onConnection(false);
      // The browser itself tries again after a lost connection, but not after an HTTP status such
      // as the 502 of a proxy, or the 401 after the end of a session: refresh then finds the login.
      if (changes.readyState === EventSource.CLOSED) {
        reconnection = setTimeout(connect, RECONNECT_MS);
        scheduleRefresh();
      }
    });
  }

  function disconnect() {
    clearTimeout(reconnection);
    changes?.close();
  }

  function connectIfVisible() {
    disconnect();
    if (!document.hidden) connect();
  }

  connectIfVisible();
  document.addEventListener("visibilitychange", connectIfVisible);
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
}

/** Gateway time between two readings. */
export class GatewayClock {
  #readAt = 0;
  #now = 0;
  #frozen = false;

  /** Take a reading from an element with data-now and data-frozen. */
  set({ dataset }) {
    this.#readAt = performance.now();
    this.#now = Date.parse(dataset.now);
    this.#frozen = dataset.frozen === "true";
  }

  /** Gateway time now, in milliseconds since 1970. */
  now() {
    return this.#now + (this.#frozen ? 0 : performance.now() - this.#readAt);
  }

  /** Gateway time of day: hours, minutes and seconds. */
  timeOfDay() {
    return new Date(this.now()).toISOString().slice(11, 19);
  }

  /** Minutes and seconds until a time, or hours and minutes. due: in ISO 8601. */
  timeLeft(due) {
    const seconds = Math.max(0, Math.ceil((Date.parse(due) - this.now()) / 1000));
    const minutes = Math.floor(seconds / 60);
    if (minutes >= 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
    return `${minutes}:${String(seconds % 60).padStart(2, "0")}`;
  }
}
