// The screen of a demonstration: the phone beside the shop is that of the customer in the shop.

const shop = document.getElementById("shop");
const phone = document.getElementById("phone");
const PAGES = phone.dataset.pages;

function show(number) {
  const address = `${PAGES}${number}?alone`;
  if (/^0[0-9]{9}$/.test(number) && phone.src !== address) phone.src = address;
}

function follow() {
  const page = shop.contentDocument; // null while the payment page of the gateway is open
  if (!page) return;
  const input = page.getElementById("phone");
  show(input?.value ?? page.querySelector("[data-phone]")?.dataset.phone ?? "");
  input?.addEventListener("change", () => show(input.value));
}

shop.addEventListener("load", follow);
if (shop.contentDocument?.readyState === "complete") follow();
