// What the networks of production answer when they are asked whether they can be reached.

import { post } from "./control.js";
import { text } from "./text.js";

const dialog = document.getElementById("health");
const answers = dialog?.querySelector("[data-health]");
let asked = 0;

function element(name, words, kind = "") {
  const made = document.createElement(name);
  made.textContent = words;
  if (kind) made.className = kind;
  return made;
}

function row({ name, adapter, health }) {
  const made = document.createElement("li");
  const badge = element("span", text(health.ok ? "reached" : "not_reached"), `badge ${health.ok ? "good" : "bad"}`);
  made.append(badge, " ", element("strong", name), ` (${adapter}): ${health.detail}`);
  return made;
}

/** Ask every network whether it can be reached, and show what each one answers, as text. */
export async function checkNetworks() {
  const mine = ++asked;
  answers.replaceChildren(element("p", text("asking")), document.createElement("progress"));
  dialog.showModal();
  try {
    const { networks } = await post("networks/check", "{}");
    const list = element("ul", "", "verdicts");
    list.append(...networks.map(row));
    if (mine === asked) answers.replaceChildren(list);
  } catch (problem) {
    if (mine === asked) answers.replaceChildren(element("p", problem.message, "alert bad"));
  }
}
