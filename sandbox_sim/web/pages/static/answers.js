// Shows in a dialog what the server answers. All words of the answer are put in as text.

export function element(name, words, kind = "") {
  const node = document.createElement(name);
  node.textContent = words;
  if (kind) node.className = kind;
  return node;
}

/** Returns a function that opens the dialog with `words`, calls `ask`, and shows its nodes in `place`.
 *  Of several calls only the newest shows its nodes. If `ask` throws an error, its message is shown. */
export function answersIn(dialog, place) {
  let newest = 0;
  return async (words, ask) => {
    const number = ++newest;
    place.replaceChildren(element("p", words), document.createElement("progress"));
    dialog.showModal();
    const nodes = await ask().catch((problem) => [element("p", problem.message, "alert bad")]);
    if (number === newest) place.replaceChildren(...nodes);
  };
}
