// Calls of the control API. Its error messages are sentences, and are shown as they are.

const BASE = new URL("../", import.meta.url);

async function call(method, path, body) {
  const answer = await fetch(new URL(path, BASE), {
    method,
    body,
    headers: { "Content-Type": "application/json", Accept: "application/json" },
  });
  const document = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(document.error?.message ?? `The server answered HTTP ${answer.status}`);
  return document;
}

export const get = (path) => call("GET", path);
export const post = (path, body) => call("POST", path, body);
export const patch = (path, body) => call("PATCH", path, body);
export const remove = (path) => call("DELETE", path);

let hiding = 0;

/** Show a sentence at the bottom of the page. */
export function say(sentence, { bad = false } = {}) {
  const toast = document.getElementById("toast");
  toast.textContent = sentence;
  toast.className = bad ? "toast bad" : "toast";
  toast.hidden = false;
  toast.hidePopover();
  toast.showPopover(); // above a dialog that has opened since
  clearTimeout(hiding);
  hiding = setTimeout(() => { toast.hidden = true; }, bad ? 12000 : 5000);
}

/** The fields of a form of changes that a person has edited; an empty one means null. */
export function changesOf(form) {
  const changes = {};
  for (const field of form.elements) {
    const chosen = [...field.options ?? []].find((each) => each.defaultSelected);
    if (!field.name || field.value === (chosen?.value ?? field.defaultValue)) continue;
    changes[field.name] = jsonOf(field.value);
  }
  return changes;
}

function jsonOf(text) {
  if (text === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    return text; // the server says what it must be
  }
}

function isLeftOut(field) {
  const empty = field.type === "checkbox" ? !field.checked : field.value === "";
  return !field.name || empty || field.matches(":disabled");
}

function valueOf(field) {
  if (field.type === "checkbox") return true;
  if (field.type === "number" || field.hasAttribute("data-number")) return Number(field.value);
  return field.hasAttribute("data-boolean") ? field.value === "true" : field.value;
}

/**
 * The JSON body of a form: empty and disabled fields are left out, `a.b` is inside of `a`, and `a.0`
 * is the first of the list `a`.
 */
export function bodyOf(form) {
  const body = {};
  for (const field of form.elements) {
    if (isLeftOut(field)) continue;
    const names = field.name.split(".");
    let inside = body;
    names.slice(0, -1).forEach((name, place) => {
      inside = inside[name] ??= /^[0-9]+$/.test(names[place + 1]) ? [] : {};
    });
    inside[names.at(-1)] = valueOf(field);
  }
  return body;
}
