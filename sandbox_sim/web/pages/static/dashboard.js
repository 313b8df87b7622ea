// The dashboard: loads its own address again when something happens, and replaces what changed.
// The server renders everything; no text of a record is made into markup here.

import {
  bodyOf, changesOf, clearProblems, get, patch, post, remove, say, showProblems,
} from "./control.js";
import { askDoctor } from "./doctor.js";
import { GatewayClock, keepFresh } from "./live.js";
import { checkNetworks } from "./networks.js";
import { prepareSend, openSend } from "./send.js";

const MIN_PAUSE_MS = 700;
// A page that takes long to render is loaded less often: the pause is this many times as long.
const PAUSE_TIMES = 20;
const MAX_PAUSE_MS = 5000;
const $ = (selector, root = document) => root.querySelector(selector);

let lastTook = 0;
let waiting = 0;
// How many pages have been asked for, the number of the newest that was shown, and that of the
// last one the user asked for.
let asked = 0;
let shown = 0;
let wanted = 0;

// ---- what the page shows ----

/** The page at this address, and its number: pages may come in another order. */
async function load(address) {
  const number = ++asked;
  const began = performance.now();
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  if (answer.redirected && new URL(answer.url).pathname.endsWith("/login")) {
    location.assign(answer.url);
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  lastTook = performance.now() - began;
  return { page, number };
}

function swap(id, page, { animate = false } = {}) {
  const here = document.getElementById(id);
  const there = page.getElementById(id);
  if (!here || !there || here.innerHTML === there.innerHTML) return;
  const known = new Set([...here.querySelectorAll("[data-key]")].map((row) => row.dataset.key));
  const open = [...here.querySelectorAll("details")].map((each) => each.open);
  const scrolled = $(".rows", here)?.scrollTop ?? 0;
  const fresh = document.importNode(there, true);
  if (animate && known.size) {
    for (const row of fresh.querySelectorAll("[data-key]")) {
      row.classList.toggle("fresh", !known.has(row.dataset.key));
    }
  }
  here.replaceWith(fresh);
  fresh.querySelectorAll("details").forEach((each, place) => { each.open = open[place] ?? false; });
  if (scrolled && $(".rows", fresh)) $(".rows", fresh).scrollTop = scrolled;
}

function isReading() {
  const rows = $("#rows");
  return (rows && rows.scrollTop > 40) || new URLSearchParams(location.search).has("after");
}

function isTyping() {
  const focused = document.activeElement;
  return focused instanceof HTMLElement && focused.matches("input, select, textarea")
    && !focused.closest("[data-search]") && $("#main").contains(focused);
}

/** Whether the form in the list has been edited. A new list would empty it. */
function isEdited() {
  return $("#list [data-edited]") !== null;
}

/** Whether the user is working with the open record. */
function isBusy() {
  return isTyping() || $("#detail :is(dialog, details)[open]") !== null
    || Boolean($("#detail")?.contains(document.activeElement));
}

/**
 * The address of what is shown. Until the user chooses a record it is the newest one, which stays
 * open while the user works with it.
 */
function address() {
  const here = new URL(location.href);
  const current = $("#rows [aria-current]");
  if (current && isBusy()) here.searchParams.set("open", current.closest("[data-key]").dataset.key);
  return here;
}

async function refresh() {
  const here = address().href;
  let page, number;
  try {
    ({ page, number } = await load(here));
  } catch {
    return; // the server is unreachable; when the feed has reconnected, this is called again
  }
  if (address().href !== here) return refresh(); // another record was opened meanwhile
  if (number < shown) return; // a newer page came first
  shown = number;
  swap("clock", page);
  swap("troubles", page);
  if (isReading()) {
    const known = new Set([...document.querySelectorAll("#rows [data-key]")].map((row) => row.dataset.key));
    waiting = [...page.querySelectorAll("#rows [data-key]")].filter((row) => !known.has(row.dataset.key)).length;
    showCount();
  } else if (!isTyping() && !isEdited()) {
    swap("list", page, { animate: true });
  }
  const busy = isTyping() || $("#detail dialog[open]") || $("#detail")?.contains(document.activeElement);
  if (!busy) swap("detail", page);
  tick();
}

function showCount() {
  let note = $("#new-count");
  if (!waiting || !$("#rows")) return;
  if (!note) {
    note = document.createElement("button");
    note.id = "new-count";
    note.className = "primary new-count";
    $("#rows").prepend(note);
    note.addEventListener("click", () => { $("#rows").scrollTop = 0; note.remove(); go(address()); });
  }
  note.textContent = `${waiting} new`;
}

/** Show another address of the dashboard without loading the whole page again. */
async function go(target, { push = true, keepSearch = false } = {}) {
  const loading = load(target);
  wanted = asked;
  const { page, number } = await loading;
  if (number < wanted) return; // the user has gone on
  if (push) history.pushState(null, "", target);
  document.title = page.title;
  const [here, there] = [$("#main"), page.getElementById("main")];
  if (!here || !there) { location.assign(target); return; }
  const typed = keepSearch ? $("[data-search] [name=q]") : null;
  if (typed) {
    swap("list", page);
    swap("detail", page);
    here.className = there.className;
  } else {
    const scrolled = $("#rows")?.scrollTop ?? 0;
    here.replaceWith(document.importNode(there, true));
    if ($("#rows")) $("#rows").scrollTop = scrolled;
  }
  $(".bar nav")?.replaceWith(document.importNode($(".bar nav", page), true));
  swap("clock", page);
  swap("troubles", page);
  tick();
  if (number < shown) await refresh(); // what came first is newer
  else shown = number;
}

// ---- the clock ----

const clock = new GatewayClock();

function readClock() {
  const bar = $("#clock");
  if (!bar || bar.dataset.read) return;
  bar.dataset.read = "yes";
  clock.set(bar);
}

function tick() {
  readClock();
  const now = $("#clock .now");
  if (now) now.textContent = clock.timeOfDay();
  const due = $("#clock")?.dataset.due;
  if (due && $("#clock .left")) $("#clock .left").textContent = ` in ${clock.left(due)}`;
  for (const each of document.querySelectorAll(".timeline [data-due]")) {
    each.textContent = `in ${clock.left(each.dataset.due)}`;
  }
}

// ---- actions ----

async function act(button, work, done, refused = (problem) => say(problem.message, { bad: true })) {
  button.disabled = true;
  try {
    const answer = await work();
    say(typeof done === "function" ? done(answer) : done || "Done");
    await refresh();
    return true;
  } catch (problem) {
    refused(problem);
    return false;
  } finally {
    button.disabled = false;
  }
}

function ranWords(answer) {
  const count = answer.ran.length;
  if (!count) return "The clock moved; nothing was due";
  const kinds = [...new Set(answer.ran.map((job) => job.kind))].join(", ");
  return `The clock moved and ${count} ${count === 1 ? "job" : "jobs"} ran: ${kinds}`;
}

async function copy(copied) {
  try {
    await navigator.clipboard.writeText(copied);
    say("Copied");
  } catch {
    say(copied);
  }
}

const acts = {
  "[data-post]": (button) =>
    act(
      button, () => post(button.dataset.post, button.dataset.body || "{}"),
      "ran" in button.dataset ? ranWords : (answer) => answer.network_said ?? button.dataset.done,
    ),
  "[data-delete]": (button) => {
    delete button.form?.dataset.edited; // so that the refresh shows the values that now apply
    return act(button, () => remove(button.dataset.delete), button.dataset.done);
  },
  "[data-post-each]": (button) => act(button, async () => {
    const ids = button.dataset.ids.split(" ");
    for (const id of ids) await post(button.dataset.postEach.replace("{id}", encodeURIComponent(id)), "{}");
    return ids.length;
  }, (count) => `${count} ${count === 1 ? "attempt was" : "attempts were"} made`),
  "[data-next-due]": (button) => act(button, () => {
    const seconds = Math.max(0, (Date.parse($("#clock").dataset.due) - clock.now()) / 1000);
    return post("clock/advance", JSON.stringify({ seconds: Math.round(seconds * 1000 + 1) / 1000 }));
  }, ranWords),
  "[data-copy]": (button) => copy(button.dataset.copy),
  "[data-doctor]": (button) => askDoctor(button.dataset),
  "[data-check-networks]": () => checkNetworks(),
  "[data-dialog]": (button) => {
    if (button.dataset.dialog === "send") { openSend(); return; }
    if (button.dataset.dialog === "more") listSnapshots();
    $(`#${button.dataset.dialog}`).showModal();
  },
  "[data-send-first]": (button) => openSend(button.dataset.sendFirst),
  "[data-close]": (button) => button.closest("dialog").close(),
};

function button(words, work, done) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = words;
  made.addEventListener("click", () => act(made, work, done));
  return made;
}

async function listSnapshots() {
  const list = $("[data-snapshots]");
  const { snapshots } = await get("snapshots");
  list.replaceChildren(...snapshots.map(({ name, taken_at: at }) => {
    const row = document.createElement("li");
    const address = `snapshots/${encodeURIComponent(name)}`;
    row.append(
      `${name}, ${at.slice(11, 19)} `,
      button("Restore", () => post(`${address}/restore`, "{}"), `${name} is restored`), " ",
      button(
        "Delete", async () => { await remove(address); await listSnapshots(); },
        `${name} is deleted`,
      ),
    );
    return row;
  }));
}

// ---- which requests an override or a fault would match ----

let previewing = 0;

async function preview(form) {
  const match = bodyOf(form).match ?? {};
  const wanted = {};
  for (const name of ["service_id", "operation", "transaction_id"]) if (match[name]) wanted[name] = match[name];
  if (match.customer_number) wanted["request.customer_number"] = match.customer_number;
  if (match.nw) wanted["request.nw"] = match.nw;
  const words = $("[data-preview]", form);
  try {
    const { requests, next } = await post("requests/find", JSON.stringify({ match: wanted, limit: 100 }));
    const { min = -Infinity, max = Infinity } = match.amount ?? {};
    const fit = requests.filter(({ request }) => !match.amount || (request.amount >= min && request.amount <= max));
    words.textContent = next
      ? `Of the requests so far, more than ${fit.length} match.`
      : `Of the requests so far, ${fit.length} ${fit.length === 1 ? "matches" : "match"}.`;
  } catch (problem) {
    words.textContent = problem.message;
  }
}

document.addEventListener("input", (event) => {
  const form = event.target.closest?.("form.forms");
  if (!form || !event.target.name?.startsWith("match.")) return;
  clearTimeout(previewing);
  previewing = setTimeout(() => preview(form), 300);
});

// A choice shows its own fields; the others are hidden and not sent.
document.addEventListener("change", (event) => {
  const choice = event.target.closest?.("[data-chooses]");
  if (!choice) return;
  for (const group of choice.form.querySelectorAll("[data-choice]")) {
    group.disabled = !group.dataset.choice.split(" ").includes(choice.value);
    group.hidden = group.disabled;
  }
});

document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element)) return;
  for (const [selector, work] of Object.entries(acts)) {
    const button = event.target.closest(selector);
    if (button) { event.preventDefault(); work(button); return; }
  }
  const link = event.target.closest("#main a[href^='?'], #troubles a[href^='?'], .bar nav a[href*='?view=']");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    go(link.href).then(() => link.dataset.then && $(`#${link.dataset.then}`)?.showModal());
  }
});

document.addEventListener("input", (event) => {
  const form = event.target.closest?.("#list [data-post-form]");
  if (form) form.dataset.edited = "";
});

/** The message after a form was sent: a text, or a function of the answer. */
function doneWords(form) {
  if ("enters" in form.dataset) {
    return ({ id, amount, debit, credit }) => `Entry ${id}: ${amount} from ${debit} to ${credit}`;
  }
  if ("closes" in form.dataset) {
    return ({ period, total, currency, lines }) =>
      `Period ${period} is closed: ${total} ${currency} in ${lines.length} ${lines.length === 1 ? "line" : "lines"}`;
  }
  return form.dataset.done;
}

/** Post a form. The next refresh replaces it by an empty one if it is in the list. */
async function send(form) {
  const answer = "changes" in form.dataset
    ? await patch(form.dataset.postForm, JSON.stringify(changesOf(form)))
    : await post(form.dataset.postForm, JSON.stringify(bodyOf(form)));
  delete form.dataset.edited;
  if (form.closest("#list")) document.activeElement?.blur();
  return answer;
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.dataset.postForm) {
    event.preventDefault();
    const button = event.submitter ?? $("button", form);
    if (form.hasAttribute("data-confirm") && !confirm("Reset? This cannot be undone.")) return;
    clearProblems(form);
    const done = await act(
      button, () => send(form), doneWords(form), (problem) => showProblems(form, problem),
    );
    if (done && form.closest("dialog")) form.closest("dialog").close();
  } else if (form.hasAttribute("data-search")) {
    event.preventDefault();
    search(form);
  }
});

function search(form) {
  const target = new URL(location.pathname, location.origin);
  for (const [name, value] of new FormData(form)) if (value) target.searchParams.set(name, value);
  go(target, { keepSearch: true });
}

let typing = 0;
document.addEventListener("input", (event) => {
  const form = event.target.closest?.("[data-search]");
  if (!form) return;
  clearTimeout(typing);
  typing = setTimeout(() => search(form), 250);
});

// ---- keyboard ----

function step(by) {
  const links = [...document.querySelectorAll("#rows [data-key] a")];
  const at = links.findIndex((link) => link.hasAttribute("aria-current"));
  const next = links[Math.min(Math.max(at + by, 0), links.length - 1)];
  if (!next) return;
  const key = next.closest("[data-key]").dataset.key;
  go(next.href).then(() => {
    const link = [...document.querySelectorAll("#rows [data-key]")].find((row) => row.dataset.key === key);
    $("a", link ?? document)?.focus();
  });
}

const keys = {
  "/": () => $("[data-search] [name=q]")?.select(),
  "?": () => $("#help").showModal(),
  j: () => step(1),
  k: () => step(-1),
  r: () => [...document.querySelectorAll("#detail [data-key-name=r]")].at(-1)?.click(),
};

document.addEventListener("keydown", (event) => {
  const focused = event.target;
  const types = focused instanceof Element && focused.matches("input, select, textarea");
  if (types || event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]")) return;
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});

// ---- live ----

keepFresh(
  new URL("changes", new URL("./", location.href)), refresh,
  () => Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, lastTook * PAUSE_TIMES)),
  (answers) => { $("#unreachable").hidden = answers; },
);
addEventListener("popstate", () => go(location.href, { push: false }));

prepareSend(refresh);
tick();
setInterval(tick, 1000);
