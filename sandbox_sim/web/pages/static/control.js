// Calls of the control API. Its error messages are sentences, and are shown as they are.

import { text } from "./text.js";

const BASE = new URL("../", import.meta.url);

async function call(method, path, body) {
  const answer = await fetch(new URL(path, BASE), {
    method,
    body,
    headers: { "Content-Type": "application/json", Accept: "application/json" },
  });
  const document = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(document.error?.message ?? text("server_answered", { status: answer.status }));
  return document;
}

export const get = (path) => call("GET", path);
export const post = (path, body) => call("POST", path, body);
export const remove = (path) => call("DELETE", path);

let hiding = 0;

/** Show a sentence at the bottom of the page. */
export function say(sentence, { bad = false } = {}) {
  const toast = document.getElementById("toast");
  toast.textContent = sentence;
  toast.className = bad ? "toast bad" : "toast";
  toast.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => { toast.hidden = true; }, bad ? 12000 : 5000);
}

/** The JSON body of a form: empty fields are left out, `a.b` is inside of `a`. */
export function bodyOf(form) {
  const body = {};
  for (const field of form.elements) {
    if (!field.name || (field.type === "checkbox" ? !field.checked : field.value === "")) continue;
    const isNumber = field.type === "number" || field.hasAttribute("data-number");
    const value = field.type === "checkbox" ? true : isNumber ? Number(field.value) : field.value;
    const names = field.name.split(".");
    let inside = body;
    for (const name of names.slice(0, -1)) inside = inside[name] ??= {};
    inside[names.at(-1)] = value;
  }
  return body;
}
