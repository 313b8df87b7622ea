// Shows the doctor's report about a receiver.

import { element, answersIn } from "./answers.js";
import { post } from "./control.js";

const TONES = { ok: "good", warning: "wait", wrong: "bad", note: "info", skipped: "info" };
// The order of the verdicts: the most important first.
const ORDER = ["wrong", "warning", "ok", "note", "skipped"];
// The names of checks on the page, where they differ from those in the answer.
const NAMES = {
  tls: "encrypted",
  successful: "successful payment",
  repeated: "repeated callback",
  failed: "failed payment",
  cancelled: "cancelled payment",
};
const dialog = document.getElementById("doctor");
const show = answersIn(dialog, dialog.querySelector("[data-verdicts]"));

/** Merge the checks that have the same result for several bodies. */
function groupChecks(checks) {
  const groups = new Map();
  for (const each of checks) {
    const key = JSON.stringify([each.check, each.verdict, each.says]);
    if (!groups.has(key)) groups.set(key, { ...each, profiles: [] });
    if (each.profile) groups.get(key).profiles.push(each.profile);
  }
  return [...groups.values()].sort((one, two) => ORDER.indexOf(one.verdict) - ORDER.indexOf(two.verdict));
}

function row({ check, verdict, says, remedy, profiles }, all) {
  const item = element("li", "");
  const every = all.length > 1 && profiles.length === all.length;
  const bodies = every ? "every body" : profiles.join(", ");
  item.append(
    element("span", verdict, `badge ${TONES[verdict]}`), " ",
    element("strong", NAMES[check] ?? check.replace("_", " ")), `: ${says}`, bodies ? ` (${bodies})` : "",
  );
  if (remedy && verdict !== "ok") item.append(element("p", `do: ${remedy}`, "advice"));
  return item;
}

function reportNodes({ checks, profiles, counts, healthy, complete }) {
  const list = element("ul", "", "verdicts");
  list.append(...groupChecks(checks).map((each) => row(each, profiles)));
  const summary = healthy ? "Nothing is wrong." : `${counts.wrong} ${counts.wrong === 1 ? "check is" : "checks are"} wrong.`;
  const text = complete ? summary : `${summary} The time limit ended the examination before all checks were made.`;
  return [element("p", text, healthy ? "" : "alert bad"), list];
}

/**
 * Examine the receiver of a callback and show what is wrong. url: its address as it is shown;
 * command: what does the same in a shell, quoted.
 */
export async function askDoctor({ doctor: url, callback, command }) {
  dialog.querySelector(".receiver").textContent = url;
  dialog.querySelector(".command").textContent = command;
  dialog.querySelector("[data-copy]").dataset.copy = command;
  await show("Sending sample callbacks…", async () => reportNodes(await post("doctor", JSON.stringify({ callback }))));
}
