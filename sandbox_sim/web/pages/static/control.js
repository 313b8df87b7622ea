// Calls of the control API. Its error messages are sentences, and are shown as they are.

const BASE = new URL("../", import.meta.url);

/** Send a request to the control API; returns the HTTP status and the JSON of the answer. */
export async function send(method, path, body) {
  const answer = await fetch(new URL(path, BASE), {
    method,
    body,
    headers: { "Content-Type": "application/json", Accept: "application/json" },
  });
  return { status: answer.status, ok: answer.ok, document: await answer.json().catch(() => ({})) };
}

async function call(method, path, body) {
  const { status, ok, document } = await send(method, path, body);
  if (!ok) {
    const message = status === 401 ? "You are logged out: load the page again to log in"
      : document.error?.message ?? `The server answered HTTP ${status}`;
    throw Object.assign(new Error(message), { field: document.error?.field });
  }
  return document;
}

export const get = (path) => call("GET", path);
export const post = (path, body) => call("POST", path, body);
export const patch = (path, body) => call("PATCH", path, body);
export const remove = (path) => call("DELETE", path);

let hideTimer = 0;

/** Show a sentence at the bottom of the page. */
export function showToast(sentence, { bad = false } = {}) {
  const toast = document.getElementById("toast");
  toast.textContent = sentence;
  toast.className = bad ? "toast bad" : "toast";
  toast.hidden = false;
  toast.hidePopover();
  toast.showPopover(); // above a dialog that has opened since
  clearTimeout(hideTimer);
  hideTimer = setTimeout(() => { toast.hidden = true; }, bad ? 12000 : 5000);
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
    return text; // the server reports what is wrong with it
  }
}

function isOmitted(field) {
  const empty = field.type === "checkbox" ? !field.checked : field.value === "";
  return !field.name || empty || field.matches(":disabled");
}

function valueOf(field) {
  if (field.type === "checkbox") return true;
  if (field.hasAttribute("data-next-day")) return new Date(field.valueAsNumber + 86_400_000).toISOString();
  if (field.type === "number" || field.hasAttribute("data-number")) return Number(field.value);
  return field.hasAttribute("data-boolean") ? field.value === "true" : field.value;
}

/**
 * The JSON body of a form: empty and disabled fields are left out, `a.b` is a member of `a`, and `a.0`
 * is the first of the list `a`.
 */
export function bodyOf(form) {
  const body = {};
  for (const field of form.elements) {
    if (isOmitted(field)) continue;
    const names = field.name.split(".");
    let parent = body;
    names.slice(0, -1).forEach((name, place) => {
      parent = parent[name] ??= /^[0-9]+$/.test(names[place + 1]) ? [] : {};
    });
    parent[names.at(-1)] = valueOf(field);
  }
  return body;
}

/** Remove the problems that a form shows. */
export function clearProblems(form) {
  for (const each of form.querySelectorAll(".problem")) each.remove();
  for (const field of form.querySelectorAll("[aria-invalid]")) {
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
  }
}

function fieldOf(form, name) {
  const fields = [...form.elements].filter((each) => each.name && !each.matches(":disabled"));
  return name && (fields.find((each) => each.name === name)
    ?? fields.find((each) => each.name.startsWith(`${name}.`)));
}

/**
 * Show a refusal in a form: each problem at its field, any other one at the end. A problem begins
 * with the name of its field, as the control API writes it, or the error names the field.
 */
export function showProblems(form, { message, field: named }) {
  clearProblems(form);
  const problems = named ? [message] : message.split(/; |\n/);
  let first = null;
  problems.forEach((text, place) => {
    const field = fieldOf(form, named ?? text.split(" ")[0]);
    const note = document.createElement("p");
    note.className = "problem";
    note.textContent = text;
    if (field) {
      note.id = `problem-${form.dataset.postForm.replaceAll("/", "-")}-${place}`;
      field.setAttribute("aria-invalid", "true");
      field.setAttribute("aria-describedby", note.id);
      for (let each = field.closest("details"); each; each = each.parentElement.closest("details")) each.open = true;
      field.after(note);
      first ??= field;
    } else {
      note.setAttribute("role", "alert");
      (form.querySelector(".acts:last-of-type") ?? form).before(note);
    }
  });
  first?.focus();
}
