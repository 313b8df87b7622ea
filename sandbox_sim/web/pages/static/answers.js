// Shows in a dialog what the server answers. All words of the answer are put in as text.

export function element(name, words, kind = "") {
  const made = document.createElement(name);
  made.textContent = words;
  if (kind) made.className = kind;
  return made;
}

/** Returns a function that opens the dialog with `words`, asks, and shows in `place` what it gets.
 *  Of several questions only the newest shows its answer. `ask` returns nodes or throws an error. */
export function shownIn(dialog, place) {
  let newest = 0;
  return async (words, ask) => {
    const mine = ++newest;
    place.replaceChildren(element("p", words), document.createElement("progress"));
    dialog.showModal();
    const nodes = await ask().catch((problem) => [element("p", problem.message, "alert bad")]);
    if (mine === newest) place.replaceChildren(...nodes);
  };
}
