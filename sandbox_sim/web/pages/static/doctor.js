// What the doctor says about a receiver.

import { element, shownIn } from "./answers.js";
import { post } from "./control.js";
import { text } from "./text.js";

const TONES = { ok: "good", warning: "wait", wrong: "bad", note: "info", skipped: "info" };
// Those that people look for come first.
const ORDER = ["wrong", "warning", "ok", "note", "skipped"];
const dialog = document.getElementById("doctor");
const show = shownIn(dialog, dialog.querySelector("[data-verdicts]"));

/** The checks that say the same of several bodies are one. */
function grouped(checks) {
  const groups = new Map();
  for (const each of checks) {
    const key = JSON.stringify([each.check, each.verdict, each.says]);
    if (!groups.has(key)) groups.set(key, { ...each, profiles: [] });
    if (each.profile) groups.get(key).profiles.push(each.profile);
  }
  return [...groups.values()].sort((one, two) => ORDER.indexOf(one.verdict) - ORDER.indexOf(two.verdict));
}

function row({ check, verdict, says, remedy, profiles }, all) {
  const made = element("li", "");
  const every = all.length > 1 && profiles.length === all.length;
  const bodies = every ? text("every_body") : profiles.join(", ");
  made.append(
    element("span", text(`verdict_${verdict}`), `badge ${TONES[verdict]}`), " ",
    element("strong", text(`check_${check}`)), `: ${says}`, bodies ? ` (${bodies})` : "",
  );
  if (remedy && verdict !== "ok") made.append(element("p", text("do", { remedy }), "advice"));
  return made;
}

function shown({ checks, profiles, counts, healthy, complete }) {
  const list = element("ul", "", "verdicts");
  list.append(...grouped(checks).map((each) => row(each, profiles)));
  const sum = healthy ? text("healthy") : text("unhealthy", { count: counts.wrong });
  const whole = complete ? sum : `${sum} ${text("incomplete")}`;
  return [element("p", whole, healthy ? "" : "alert bad"), list];
}

/** Examine the receiver of a callback and show what is wrong. url: its address as it is shown. */
export async function askDoctor(url, callback) {
  dialog.querySelector(".receiver").textContent = url;
  const command = `sandbox-sim doctor ${url} --paid COMMAND`;
  dialog.querySelector(".command").textContent = command;
  dialog.querySelector("[data-copy]").dataset.copy = command;
  await show(text("examining"), async () => shown(await post("doctor", JSON.stringify({ callback }))));
}
