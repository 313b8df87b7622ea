// The page of an order: asks for its version and shows what has changed, without moving the focus.

const live = document.getElementById("live");
const announcement = document.getElementById("announcement");
const SOON_MS = 1000;
const LATER_MS = 10000;
// After this many answers without a change about an order that waits for nothing, ask less often.
const QUIET_ANSWERS = 15;
let quiet = 0;

async function changed() {
  const answer = await fetch(`${live.dataset.address}/version`);
  if (!answer.ok) return false;
  const { version, waiting } = await answer.json();
  const isNew = String(version) !== live.dataset.version;
  quiet = waiting || isNew ? 0 : quiet + 1;
  return isNew;
}

async function show() {
  const answer = await fetch(live.dataset.address);
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById("live");
  const focused = live.contains(document.activeElement) ? document.activeElement.id : "";
  const before = live.dataset.state;
  live.replaceChildren(...fresh.childNodes);
  live.dataset.version = fresh.dataset.version;
  live.dataset.state = fresh.dataset.state;
  document.title = page.title;
  if (focused) document.getElementById(focused)?.focus();
  if (before !== live.dataset.state) announcement.textContent = live.dataset.state;
}

async function watch() {
  try {
    if (!document.hidden && (await changed())) await show();
  } catch {
    quiet = QUIET_ANSWERS; // the shop is away; ask again later
  }
  setTimeout(watch, quiet < QUIET_ANSWERS ? SOON_MS : LATER_MS);
}

setTimeout(watch, SOON_MS);
