// The handset: loads its own address again when something happens to this number.
// The server renders everything; no text of a record is made into markup here.

import { post, showToast } from "./control.js";
import { GatewayClock, keepFresh } from "./live.js";

const MIN_PAUSE_MS = 250;
const here = new URL(location.href);
// The address that it loads again: the phone without the QR code, which would be a new one each time.
const aloneAddress = new URL(here);
aloneAddress.searchParams.set("alone", "");
const path = `handset/${here.pathname.split("/").at(-1)}`;
const $ = (selector, root = document) => root.querySelector(selector);

const clock = new GatewayClock();
clock.set($("#screen"));

function tick() {
  $(".top .now").textContent = clock.timeOfDay().slice(0, 5);
  const prompt = $("#prompt");
  if (!prompt) return;
  $(".left", prompt).textContent = clock.timeLeft(prompt.dataset.due);
}

function scrollToEnd() {
  $("#thread").scrollTop = $("#thread").scrollHeight;
}

async function refresh() {
  let page;
  try {
    const answer = await fetch(aloneAddress, { headers: { Accept: "text/html" } });
    if (answer.redirected) location.reload(); // to the login
    page = new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch {
    return; // the server is unreachable; when the feed has reconnected, this is called again
  }
  const fresh = page.getElementById("screen");
  if (!fresh) return;
  clock.set(fresh);
  if ($("#thread").innerHTML !== $("#thread", fresh).innerHTML) {
    $("#thread").replaceWith(document.importNode($("#thread", fresh), true));
    scrollToEnd();
  }
  const [before, now] = [$("#prompt"), $("#prompt", fresh)];
  if (before?.dataset.key !== now?.dataset.key) {
    before?.remove();
    if (now) {
      const shown = document.importNode(now, true);
      shown.classList.add("fresh");
      $("#screen").append(shown);
      scrollToEnd();
    }
  }
  tick();
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
    showToast(decision === "approve" ? "Approved" : "Declined");
  } catch (problem) {
    showToast(problem.message, { bad: true });
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

keepFresh(new URL(`${here.pathname}/events`, here), refresh, () => MIN_PAUSE_MS);

scrollToEnd();
tick();
setInterval(tick, 1000);
