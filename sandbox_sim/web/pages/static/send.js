// The form that sends a request of any operation; the server has the credentials.

import { post } from "./control.js";

const form = document.querySelector("[data-send]");
const samples = JSON.parse(form.dataset.samples);
const body = form.elements.body;
const answerBox = form.querySelector(".answer");

function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(4));
  return `WEB-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

function chosenSample() {
  return samples[Number(form.elements.operation.value)];
}

function fill() {
  const sample = chosenSample();
  const fields = { ...sample.body };
  if ("request_time" in fields) fields.request_time = new Date().toISOString().slice(0, 16).replace("T", " ");
  if ("transaction_id" in fields) fields.transaction_id = newId();
  body.value = JSON.stringify(fields, null, 2);
  form.querySelector(".path").textContent = sample.path;
  const chips = form.querySelector(".magic");
  chips.querySelectorAll("button").forEach((chip) => chip.remove());
  chips.hidden = !sample.magic.length;
  for (const [words, values] of sample.magic) {
    const chip = document.createElement("button");
    chip.type = "button";
    chip.textContent = words;
    chip.addEventListener("click", () => changeBody({ ...sample.body, ...values }, Object.keys(values)));
    chips.append(chip);
  }
}

function changeBody(values, names) {
  let fields;
  try {
    fields = JSON.parse(body.value);
  } catch {
    fill();
    fields = JSON.parse(body.value);
  }
  // Undo the change of an earlier chip.
  for (const name of ["customer_number", "amount", "service_id", "account_number", "recipients"]) {
    if (name in chosenSample().body) fields[name] = chosenSample().body[name];
  }
  for (const name of names) fields[name] = values[name];
  if ("transaction_id" in fields) fields.transaction_id = newId();
  body.value = JSON.stringify(fields, null, 2);
}

function show(answer) {
  answerBox.textContent = answer;
  answerBox.hidden = false;
  answerBox.scrollIntoView({ block: "nearest" });
}

/** Open the form. name: the operation to begin with. */
export function openSend(name) {
  const place = samples.findIndex((sample) => sample.operation === name);
  if (place >= 0) form.elements.operation.value = String(place);
  fill();
  answerBox.hidden = true;
  form.closest("dialog").showModal();
}

/** afterwards: called when a request was answered. */
export function prepareSend(afterwards) {
  samples.forEach((sample, place) => form.elements.operation.add(new Option(sample.name, String(place))));
  form.elements.operation.addEventListener("change", () => { fill(); answerBox.hidden = true; });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    let sent;
    try {
      sent = JSON.parse(body.value);
    } catch (problem) {
      show(`The body is not JSON: ${problem.message}`);
      return;
    }
    const button = event.submitter ?? form.querySelector(".primary");
    button.disabled = true;
    show("Waiting for the answer…");
    try {
      const answer = await post("requests/send", JSON.stringify({ path: chosenSample().path, body: sent }));
      const status = answer.status === null ? "No answer" : `HTTP ${answer.status}`;
      show(`${status}\n${JSON.stringify(answer.body, null, 2)}`);
      if ("transaction_id" in sent) {
        changeBody(sent, Object.keys(sent).filter((each) => each !== "transaction_id"));
      }
      await afterwards();
    } catch (problem) {
      show(problem.message);
    } finally {
      button.disabled = false;
    }
  });
}
