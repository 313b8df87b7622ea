// The checkout form: the network follows the number, the button shows the total, and a second
// click while the payment is sent does nothing.

const form = document.getElementById("checkout");
const button = form.querySelector("button");
const NETWORK_OF_PREFIX = {
  "024": "MTN", "054": "MTN", "055": "MTN", "059": "MTN",
  "020": "VOD", "050": "VOD",
  "026": "AIR", "027": "AIR", "056": "AIR", "057": "AIR",
};

function followNumber(phone, network) {
  if (!phone || !network) return;
  phone.addEventListener("input", () => {
    const local = phone.value.replace(/[ ().-]/g, "").replace(/^\+?233/, "0");
    const found = NETWORK_OF_PREFIX[local.slice(0, 3)];
    if (found) network.value = found;
  });
}

// The account that the sandbox knows follows the biller; an account of one's own stays.
function followBiller(biller, account) {
  if (!biller) return;
  const hint = document.getElementById("account-more");
  const known = Array.from(biller.options, (option) => option.dataset.account);
  biller.addEventListener("change", () => {
    const next = biller.selectedOptions[0].dataset.account;
    if (known.includes(account.value)) account.value = next;
    for (const one of known) hint.textContent = hint.textContent.replace(one, next);
  });
}

function total() {
  const { quantity, amount } = form.elements;
  return button.dataset.price ? button.dataset.price * quantity.value : Number(amount.value);
}

function showTotal() {
  const sum = total();
  if (sum > 0) button.textContent = button.dataset.text.replace("{amount}", sum.toFixed(2));
}

followNumber(form.elements.phone, form.elements.nw);
followNumber(form.elements.airtime_phone, form.elements.airtime_nw);
followBiller(form.elements.biller, form.elements.account);
form.addEventListener("input", showTotal);
showTotal();

form.addEventListener("submit", (event) => {
  if (button.getAttribute("aria-disabled") === "true") {
    event.preventDefault();
    return;
  }
  button.setAttribute("aria-disabled", "true");
  button.textContent = form.dataset.sending;
});

// A page that comes back from the history of the browser is usable again.
window.addEventListener("pageshow", () => {
  button.removeAttribute("aria-disabled");
  showTotal();
});
