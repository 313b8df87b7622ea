// The page of an inbox: the button that empties it.

import { remove, showToast } from "./control.js";

const button = document.querySelector("[data-empties]");

button?.addEventListener("click", async () => {
  button.disabled = true;
  try {
    await remove(button.dataset.empties);
    location.reload();
  } catch (problem) {
    showToast(problem.message, { bad: true });
    button.disabled = false;
  }
});
