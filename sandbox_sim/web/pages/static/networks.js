// Checks whether the networks of production can be reached, and shows their answers.

import { element, answersIn } from "./answers.js";
import { post } from "./control.js";

const dialog = document.getElementById("health");
const show = dialog && answersIn(dialog, dialog.querySelector("[data-health]"));

function row({ name, adapter, health }) {
  const item = document.createElement("li");
  const badge = element("span", health.ok ? "reached" : "not reached", `badge ${health.ok ? "good" : "bad"}`);
  item.append(badge, " ", element("strong", name), ` (${adapter}): ${health.detail}`);
  return item;
}

/** Ask every network whether it can be reached, and show what each one answers. */
export const checkNetworks = () => show("Asking each network…", async () => {
  const { networks } = await post("networks/check", "{}");
  const list = element("ul", "", "verdicts");
  list.append(...networks.map(row));
  return [list];
});
