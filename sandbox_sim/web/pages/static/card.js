// One click fills in a test card. Without this script the form works as well.

const chips = document.querySelector("[data-cards]");
const { card_number: number, expiry, cvc } = document.querySelector("form").elements;

for (const chip of chips.querySelectorAll("button")) {
  chip.addEventListener("click", () => {
    number.value = chip.dataset.number;
    expiry.value = `12 / ${String((new Date().getFullYear() + 3) % 100).padStart(2, "0")}`;
    cvc.value = "123";
  });
}
chips.hidden = false;
