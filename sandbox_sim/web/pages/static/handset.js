// The handset: asks for its own address again when something happens to this number.
// The server renders everything; no text of a record is made into markup here.

import { post, say } from "./control.js";
import { text } from "./text.js";

const MIN_PAUSE_MS = 250;
const here = new URL(location.href);
// What it asks for again: the phone without the QR code beside it, which has a code of its own.
const phoneAlone = new URL(here);
phoneAlone.searchParams.set("alone", "");
const path = `handset/${here.pathname.split("/").at(-1)}`;
const $ = (selector, root = document) => root.querySelector(selector);

let stale = false;
let timer = 0;
let read = performance.now();
let gatewayRead = Date.parse($("#screen").dataset.now);
let frozen = $("#screen").dataset.frozen === "true";

function gatewayTime() {
  return gatewayRead + (frozen ? 0 : performance.now() - read);
}

function tick() {
  $(".top .now").textContent = new Date(gatewayTime()).toISOString().slice(11, 16);
  const prompt = $("#prompt");
  if (!prompt) return;
  const seconds = Math.max(0, Math.ceil((Date.parse(prompt.dataset.due) - gatewayTime()) / 1000));
  $(".left", prompt).textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

function toTheEnd() {
  $("#thread").scrollTop = $("#thread").scrollHeight;
}

async function refresh() {
  stale = false;
  let page;
  try {
    const answer = await fetch(phoneAlone, { headers: { Accept: "text/html" } });
    if (answer.redirected && new URL(answer.url).pathname !== here.pathname) location.assign(answer.url);
    page = new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch {
    return; // the server is away; the feed connects again, and then this is called again
  }
  const fresh = page.getElementById("screen");
  if (!fresh) return;
  read = performance.now();
  gatewayRead = Date.parse(fresh.dataset.now);
  frozen = fresh.dataset.frozen === "true";
  if ($("#thread").innerHTML !== $("#thread", fresh).innerHTML) {
    $("#thread").replaceWith(document.importNode($("#thread", fresh), true));
    toTheEnd();
  }
  const [before, now] = [$("#prompt"), $("#prompt", fresh)];
  if (before?.dataset.key !== now?.dataset.key) {
    before?.remove();
    if (now) {
      const shown = document.importNode(now, true);
      shown.classList.add("fresh");
      $("#screen").append(shown);
      toTheEnd();
    }
  }
  tick();
}

function soon() {
  stale = true;
  if (timer || document.hidden) return;
  timer = setTimeout(async () => {
    timer = 0;
    await refresh();
    if (stale) soon();
  }, MIN_PAUSE_MS);
}

async function answer(form, decision) {
  const body = {
    service_id: Number(form.dataset.service),
    network_transaction_id: form.dataset.key,
    decision,
    ...(decision === "approve" ? { pin: form.elements.pin.value } : {}),
  };
  const buttons = form.querySelectorAll("button");
  buttons.forEach((each) => { each.disabled = true; });
  try {
    await post(`${path}/answer`, JSON.stringify(body));
    say(text(decision === "approve" ? "approved" : "declined"));
  } catch (problem) {
    say(problem.message, { bad: true });
  }
  buttons.forEach((each) => { each.disabled = false; });
  await refresh();
}

document.addEventListener("submit", (event) => {
  event.preventDefault();
  if (event.target.id === "prompt") answer(event.target, "approve");
  else location.assign(new URL(event.target.elements.number.value, here));
});
document.addEventListener("click", (event) => {
  const button = event.target instanceof Element && event.target.closest("[data-decision=decline]");
  if (button) answer(button.form, "decline");
});

const feed = new EventSource(new URL(`${here.pathname}/events`, here));
feed.addEventListener("changed", soon);
feed.addEventListener("open", soon);
document.addEventListener("visibilitychange", () => { if (!document.hidden && stale) soon(); });
addEventListener("pagehide", () => feed.close());
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

toTheEnd();
tick();
setInterval(tick, 1000);
