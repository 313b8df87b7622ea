// The dashboard: loads its own address again when something happens, and replaces what changed.
// The server renders everything; no text of a record is made into markup here.

import {
  bodyOf, changesOf, clearProblems, get, patch, post, remove, showToast, showProblems,
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

let loadDuration = 0;
let newRowCount = 0;
// The numbers of the last page that was requested, of the newest one that was shown, and of the
// last one that the user requested.
let lastRequest = 0;
let lastShown = 0;
let lastUserRequest = 0;

// ---- what the page shows ----

/** The page at this address, and its number: pages may come in another order. */
async function loadPage(address) {
  const number = ++lastRequest;
  const began = performance.now();
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  if (answer.redirected && new URL(answer.url).pathname.endsWith("/login")) {
    location.assign(answer.url);
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  loadDuration = performance.now() - began;
  return { page, number };
}

/**
 * The element in a new part for one in the old part: in the row of the same record if it was in one,
 * with the same words if there is one, else at the same place.
 */
function counterpartOf(element, old, fresh) {
  const row = element.closest("[data-key]");
  const rows = [...fresh.querySelectorAll("[data-key]")];
  const [from, to] = row ? [row, rows.find((each) => each.dataset.key === row.dataset.key)] : [old, fresh];
  if (!to) return undefined;
  const all = (part) => [...part.querySelectorAll(element.localName)];
  const isLike = (each) => each.textContent === element.textContent && each.className === element.className;
  return all(to).filter(isLike)[all(from).filter(isLike).indexOf(element)] ?? all(to)[all(from).indexOf(element)];
}

function replacePart(id, page, { animate = false } = {}) {
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
  const focused = here.contains(document.activeElement) && counterpartOf(document.activeElement, here, fresh);
  here.replaceWith(fresh);
  fresh.querySelectorAll("details").forEach((each, place) => { each.open = open[place] ?? false; });
  if (focused) focused.focus({ preventScroll: true }); // also in what is now open
  if (scrolled && $(".rows", fresh)) $(".rows", fresh).scrollTop = scrolled;
}

function isReadingOlderRows() {
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
    ({ page, number } = await loadPage(here));
  } catch {
    return; // the server is unreachable; when the feed has reconnected, this is called again
  }
  if (address().href !== here) return refresh(); // another record was opened meanwhile
  if (number < lastShown) return; // a newer page came first
  lastShown = number;
  replacePart("clock", page);
  replacePart("troubles", page);
  if (isReadingOlderRows()) {
    const known = new Set([...document.querySelectorAll("#rows [data-key]")].map((row) => row.dataset.key));
    newRowCount = [...page.querySelectorAll("#rows [data-key]")].filter((row) => !known.has(row.dataset.key)).length;
    showNewRowCount();
  } else if (!isTyping() && !isEdited()) {
    replacePart("list", page, { animate: true });
  }
  if (!isTyping() && !$("#detail dialog[open]")) replacePart("detail", page);
  tick();
}

function showNewRowCount() {
  let note = $("#new-count");
  if (!newRowCount || !$("#rows")) return;
  if (!note) {
    note = document.createElement("button");
    note.id = "new-count";
    note.className = "primary new-count";
    $("#rows").prepend(note);
    note.addEventListener("click", () => { $("#rows").scrollTop = 0; note.remove(); navigate(address()); });
  }
  note.textContent = `${newRowCount} new`;
}

/** Show another address of the dashboard without loading the whole page again. */
async function navigate(target, { push = true, keepSearch = false } = {}) {
  const loading = loadPage(target);
  lastUserRequest = lastRequest;
  const { page, number } = await loading;
  if (number < lastUserRequest) return; // the user has gone on
  if (push) history.pushState(null, "", target);
  document.title = page.title;
  const [here, there] = [$("#main"), page.getElementById("main")];
  if (!here || !there) { location.assign(target); return; }
  const typed = keepSearch ? $("[data-search] [name=q]") : null;
  if (typed) {
    replacePart("list", page);
    replacePart("detail", page);
    here.className = there.className;
  } else {
    const scrolled = $("#rows")?.scrollTop ?? 0;
    here.replaceWith(document.importNode(there, true));
    if ($("#rows")) $("#rows").scrollTop = scrolled;
  }
  $(".bar nav")?.replaceWith(document.importNode($(".bar nav", page), true));
  replacePart("clock", page);
  replacePart("troubles", page);
  tick();
  if (number < lastShown) await refresh(); // a newer page came first
  else lastShown = number;
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
  if (due && $("#clock .left")) $("#clock .left").textContent = ` in ${clock.timeLeft(due)}`;
  for (const each of document.querySelectorAll(".timeline [data-due]")) {
    each.textContent = `in ${clock.timeLeft(each.dataset.due)}`;
  }
}

// ---- actions ----

async function runAction(button, work, done, onError = (problem) => showToast(problem.message, { bad: true })) {
  const part = document.activeElement === button && button.closest("#clock, #troubles, #list, #detail");
  button.disabled = true; // takes the focus
  try {
    const answer = await work();
    showToast(typeof done === "function" ? done(answer) : done || "Done");
    await refresh();
    return true;
  } catch (problem) {
    onError(problem);
    return false;
  } finally {
    button.disabled = false;
    if (part && document.activeElement === document.body) {
      const place = part.isConnected ? button : counterpartOf(button, part, document.getElementById(part.id));
      place?.focus({ preventScroll: true });
    }
  }
}

function advanceMessage(answer) {
  const count = answer.ran.length;
  if (!count) return "The clock moved; nothing was due";
  const kinds = [...new Set(answer.ran.map((job) => job.kind))].join(", ");
  return `The clock moved and ${count} ${count === 1 ? "job" : "jobs"} ran: ${kinds}`;
}

async function copy(copied) {
  try {
    await navigator.clipboard.writeText(copied);
    showToast("Copied");
  } catch {
    showToast(copied);
  }
}

const clickActions = {
  "[data-post]": (button) =>
    runAction(
      button, () => post(button.dataset.post, button.dataset.body || "{}"),
      "ran" in button.dataset ? advanceMessage : (answer) => answer.network_said ?? button.dataset.done,
    ),
  "[data-delete]": (button) => {
    delete button.form?.dataset.edited; // so that the refresh shows the values that now apply
    return runAction(button, () => remove(button.dataset.delete), button.dataset.done);
  },
  "[data-post-each]": (button) => runAction(button, async () => {
    const ids = button.dataset.ids.split(" ");
    for (const id of ids) await post(button.dataset.postEach.replace("{id}", encodeURIComponent(id)), "{}");
    return ids.length;
  }, (count) => `${count} ${count === 1 ? "attempt was" : "attempts were"} made`),
  "[data-next-due]": (button) => runAction(button, () => {
    const seconds = Math.max(0, (Date.parse($("#clock").dataset.due) - clock.now()) / 1000);
    return post("clock/advance", JSON.stringify({ seconds: Math.round(seconds * 1000 + 1) / 1000 }));
  }, advanceMessage),
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
  const node = document.createElement("button");
  node.type = "button";
  node.textContent = words;
  node.addEventListener("click", () => runAction(node, work, done));
  return node;
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

let previewTimer = 0;

function international(number) {
  return String(number).replace(/^0(?=[0-9]{9}$)/, "233");
}

/** Whether a rule with this match applies to the number and the amount in the body of a request. */
function fits({ customer_number: number, amount }, request) {
  const parties = [request?.customer_number, request?.account_number, request?.recipients].flat();
  const { min = -Infinity, max = Infinity } = amount ?? {};
  return (!number || parties.map(international).includes(international(number)))
    && (!amount || (request?.amount >= min && request?.amount <= max));
}

async function showPreview(form) {
  const timer = previewTimer;
  const match = bodyOf(form).match ?? {};
  const wanted = { mode: "S" };
  for (const name of ["service_id", "operation", "transaction_id"]) if (match[name]) wanted[name] = match[name];
  if (match.nw) wanted["request.nw"] = match.nw;
  let preview;
  try {
    const { requests, next } = await post("requests/find", JSON.stringify({ match: wanted, limit: 100 }));
    const count = requests.filter(({ request }) => fits(match, request)).length;
    preview = next
      ? `Of the requests so far, more than ${count} match.`
      : `Of the requests so far, ${count} ${count === 1 ? "matches" : "match"}.`;
  } catch (problem) {
    preview = problem.message;
  }
  if (timer === previewTimer) $("[data-preview]", form).textContent = preview; // nothing was typed since
}

document.addEventListener("input", (event) => {
  const form = event.target.closest?.("form.forms");
  if (!form || !event.target.name?.startsWith("match.")) return;
  clearTimeout(previewTimer);
  previewTimer = setTimeout(() => showPreview(form), 300);
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
  for (const [selector, work] of Object.entries(clickActions)) {
    const button = event.target.closest(selector);
    if (button) { event.preventDefault(); work(button); return; }
  }
  const link = event.target.closest("#main a[href^='?'], #troubles a[href^='?'], .bar nav a[href*='?view=']");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    navigate(link.href).then(() => link.dataset.then && $(`#${link.dataset.then}`)?.showModal());
  }
});

document.addEventListener("input", (event) => {
  const form = event.target.closest?.("#list [data-post-form]");
  if (form) form.dataset.edited = "";
});

/** The message after a form was sent: a text, or a function of the answer. */
function doneMessage(form) {
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

// An open dialog keeps the record around it from being refreshed.
document.addEventListener("close", (event) => {
  if (event.target.closest?.("#detail")) refresh();
}, { capture: true });

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.dataset.postForm) {
    event.preventDefault();
    const button = event.submitter ?? $("button", form);
    if (form.hasAttribute("data-confirm") && !confirm("Reset? This cannot be undone.")) return;
    clearProblems(form);
    const done = await runAction(
      button, () => send(form), doneMessage(form), (problem) => showProblems(form, problem),
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
  navigate(target, { keepSearch: true });
}

let searchTimer = 0;
document.addEventListener("input", (event) => {
  const form = event.target.closest?.("[data-search]");
  if (!form) return;
  clearTimeout(searchTimer);
  searchTimer = setTimeout(() => search(form), 250);
});

// ---- keyboard ----

function moveSelection(by) {
  const links = [...document.querySelectorAll("#rows [data-key] a")];
  const at = links.findIndex((link) => link.hasAttribute("aria-current"));
  const next = links[Math.min(Math.max(at + by, 0), links.length - 1)];
  if (!next) return;
  const key = next.closest("[data-key]").dataset.key;
  navigate(next.href).then(() => {
    const link = [...document.querySelectorAll("#rows [data-key]")].find((row) => row.dataset.key === key);
    $("a", link ?? document)?.focus();
  });
}

const keys = {
  "/": () => $("[data-search] [name=q]")?.select(),
  "?": () => $("#help").showModal(),
  j: () => moveSelection(1),
  k: () => moveSelection(-1),
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
  () => Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, loadDuration * PAUSE_TIMES)),
  (answers) => { $("#unreachable").hidden = answers; },
);
addEventListener("popstate", () => navigate(location.href, { push: false }));

prepareSend(refresh);
tick();
setInterval(tick, 1000);
