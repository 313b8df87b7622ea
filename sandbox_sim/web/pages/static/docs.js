// The reference: sends requests from the page. Without this script the page can still be read.

import { send } from "./control.js";
import { openSend, prepareSend } from "./send.js";

for (const each of document.querySelectorAll("[data-try], [data-send-first]")) each.hidden = false;
prepareSend(async () => {});

function jsonOf(text) {
  try {
    return JSON.parse(text);
  } catch (problem) {
    throw new Error(`The body is not JSON: ${problem.message}`);
  }
}

/** The address and the body of a request, from the fields of its form. */
function requestOf(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  for (const { name, value, dataset } of form.elements) {
    if (dataset.in === "path") path = path.replace(`{${name}}`, encodeURIComponent(value));
    else if (dataset.in === "query" && value) query.set(name, value);
  }
  const body = form.elements.body?.value.trim();
  return [query.size ? `${path}?${query}` : path, body ? JSON.stringify(jsonOf(body)) : undefined];
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("[data-try]")) return;
  event.preventDefault();
  const [button, box] = [form.querySelector("button"), form.querySelector(".answer")];
  button.disabled = true;
  box.hidden = false;
  box.textContent = "Waiting for the answer…";
  try {
    const { status, document: answer } = await send(form.dataset.method, ...requestOf(form));
    box.textContent = `HTTP ${status}\n${JSON.stringify(answer, null, 2)}`;
  } catch (problem) {
    box.textContent = problem.message;
  } finally {
    button.disabled = false;
  }
});

document.addEventListener("click", ({ target }) => {
  const button = target instanceof Element && target.closest("[data-send-first], [data-close]");
  if (!button) return;
  if ("close" in button.dataset) button.closest("dialog").close();
  else openSend(button.dataset.sendFirst);
});

// A link to an operation or a schema opens it.
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target?.matches("details")) target.open = true;
}
addEventListener("hashchange", openTarget);
openTarget();
