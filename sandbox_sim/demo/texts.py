"""Every text of the shop, in English. Another language is another instance of `Texts`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sandbox_sim.demo.orders import Note


def _table(**texts: str) -> Mapping[str, str]:
    return field(default_factory=lambda: texts)


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts; words in braces are filled in by the shop."""

    language: str = "en"
    shop: str = "Adwoa's Market"
    tagline: str = "Made in Ghana, paid by phone or card."
    sandbox: str = "Sandbox: no money moves"
    skip: str = "Skip to the content"
    shopping: str = "Shop"
    airtime: str = "Airtime"
    bills: str = "Bills"
    office: str = "Back office"
    buy: str = "Buy"
    made_by: str = "by {maker}, {town}"
    goods: Mapping[str, str] = _table(
        basket="Woven basket",
        cocoa="Cocoa bar, 72 %",
        shea="Shea butter, 250 g",
        cloth="Kente scarf",
        beads="Glass beads",
        drum="Hand drum",
        pepper="Shito, one jar",
        stool="Carved stool",
    )
    networks: Mapping[str, str] = _table(MTN="MTN", VOD="Vodafone (Telecel)", AIR="AirtelTigo")
    billers: Mapping[str, str] = _table(
        ECG="Electricity, postpaid",
        EPP="Electricity, prepaid",
        GHW="Water",
        GOT="Pay-TV bouquet (GOT)",
        DST="Pay-TV bouquet (DST)",
        VBB="Broadband",
    )

    screen_title: str = "A payment from all sides"
    screen_lead: str = "Buy something in the shop, approve it on the phone, and watch each step."
    pane_shop: str = "Buy in the shop"
    pane_phone: str = "Approve on the phone"
    pane_timeline: str = "See what the gateway did"
    open_alone: str = "Open alone"
    open_phone: str = "Open the phone"

    checkout: str = "Checkout"
    your_order: str = "Your order"
    quantity: str = "Quantity"
    amount: str = "Amount in {currency}"
    airtime_title: str = "Buy airtime"
    airtime_for: str = "Phone that gets the airtime"
    bill_title: str = "Pay a bill"
    biller: str = "Biller"
    account: str = "Account number"
    account_hint: str = "In the sandbox: {account} is paid, one that ends in 009 is declined."
    you: str = "About you"
    try_shopper: str = "Fill in a test shopper"
    shoppers: Mapping[str, str] = _table(
        decides="{name}, you decide",
        pays="{name}, pays",
        declines="{name}, wallet declines",
        cancels="{name}, cancels the prompt",
        waits="{name}, never answers",
    )
    name: str = "Name"
    phone: str = "Phone"
    phone_hint: str = "We send the receipt there by SMS."
    network: str = "Network of the phone"
    how: str = "How do you want to pay?"
    mobile_money: str = "Mobile money"
    mobile_money_hint: str = "You get a prompt on your phone."
    card: str = "Card"
    card_hint: str = "You type the card on the page of the payment service, not here."
    pay: str = "Pay {currency} {amount}"
    place: str = "Place the order"
    sending: str = "Sending…"
    please_correct: str = "Please correct this first"
    errors: Mapping[str, str] = _table(
        name="Enter your name, at most 60 characters.",
        phone="Enter a phone number of ten digits, such as 0244000001.",
        account="Enter the account number, 6 to 20 digits.",
        airtime_phone="Enter the phone of the receiver, ten digits, such as 0244000001.",
        network="Choose a network.",
        biller="Choose a biller.",
        quantity="Choose 1 to 9.",
        amount="Enter an amount from 1 to 20,000, with at most two decimals.",
        pay_by="Choose how to pay.",
    )

    order: str = "Order {number}"
    states: Mapping[str, str] = _table(
        pending_payment="Pending payment",
        processing="Processing",
        failed="Failed",
        cancelled="Cancelled",
    )
    # What the customer reads about each state.
    told_pending_mobile_money: str = (
        "Look at your phone {phone} and approve {currency} {amount}. This page changes by itself."
    )
    told_pending_card: str = "The card payment is not finished."
    told_pending_unsure: str = (
        "We do not know yet whether your payment arrived. Please do not pay again: we are asking."
    )
    told_processing: str = "Thank you. {currency} {amount} is paid."
    told_failed: str = "The payment failed and the order is not paid. {reason}"
    told_cancelled: str = "The payment was cancelled and the order is not paid."
    told_attention: str = "Our staff are looking at this order. Please do not pay again."
    reasons: Mapping[str, str] = _table(
        **{
            "015": "Your wallet declined it: there was not enough money in it.",
            "016": "The amount is higher than the payment service allows.",
            "019": "The payment service does not accept this number.",
            "402": "Your balance is too low.",
        }
    )
    other_reason: str = "Nothing was charged."
    to_payment_page: str = "Go on to the payment page"
    check: str = "Check the payment now"
    again: str = "Pay again"
    delivery: str = "Delivery"
    delivery_waits: str = "Sent when the order is paid"
    delivery_under_way: str = "On its way"
    delivery_done: str = "Delivered"
    delivery_failed: str = "Not delivered. Our staff will call you."
    what: str = "What"
    paid_by: str = "Paid by"
    total: str = "Total"
    customer: str = "Customer"
    messages_title: str = "SMS to {phone}"
    no_messages: str = "None yet. You get one when the payment is decided."
    notes_title: str = "Order notes, for the staff"
    back: str = "Back to the shop"

    # Bodies of the SMS.
    sms: Mapping[str, str] = _table(
        processing="{shop}: order {number} is paid, {currency} {amount}. Thank you, {name}.",
        failed="{shop}: the payment of order {number} failed. Nothing is sent until it is paid.",
        cancelled="{shop}: the payment of order {number} was cancelled.",
    )

    sources: Mapping[str, str] = _table(
        callback="Callback", status_query="Status query", answer="Answer to the request"
    )
    # Notes, by kind.
    notes: Mapping[str, str] = _table(
        begun_mobile_money="Mobile money payment {transaction_id} sent to the gateway.",
        begun_card="Card payment {transaction_id} sent to the gateway.",
        begun_airtime="Airtime {transaction_id} sent to the gateway.",
        begun_bill="Bill payment {transaction_id} sent to the gateway.",
        accepted="The gateway took {transaction_id} (202). That is not paid yet.",
        accepted_card="The gateway gave a payment page for {transaction_id} (000). Not paid yet.",
        unanswered="No clear answer about {transaction_id}: {why}. The shop will ask later.",
        asked="Status query for {transaction_id}: still pending (outer code 000, status 002).",
        no_answer="Status query for {transaction_id} failed: {why}. The shop will ask again.",
        never_arrived="The gateway does not know {transaction_id}: it never arrived.",
        moved_processing="{source}: 000, {detail}. The order is paid ({transaction_id}).",
        moved_failed="{source}: {detail}. The payment failed ({transaction_id}).",
        moved_cancelled="{source}: 003, {detail}. The payment was cancelled ({transaction_id}).",
        delivered="{source}: 000, {detail}. Delivered ({transaction_id}).",
        not_delivered="{source}: {detail}. Not delivered ({transaction_id}). Refund or send again.",
        contradicted=(
            "{source} says {status} about {transaction_id}, which is {before} here. Nothing was "
            "changed; the staff must decide."
        ),
        wrong_amount=(
            "A callback about {transaction_id} says {came}; the order asks for {wanted}. Nothing "
            "was changed; the staff must decide."
        ),
        record_gone=(
            "The gateway has dropped its record of {transaction_id} and no status came. Look it "
            "up with the gateway before anything is sent."
        ),
        sms_sent="SMS to {phone}: {text}",
        sms_refused="SMS to {phone} was refused: {code}, {why}",
        sms_unanswered="SMS to {phone} may not have been sent: {why}",
    )
    decline_detail: str = "{code}, {message}"
    never_arrived: str = "never arrived"

    office_title: str = "Orders"
    office_empty: str = "No orders yet. Buy something in the shop: it appears here."
    number: str = "Order"
    state: str = "State"
    last_note: str = "Last note"
    attention: str = "the staff must decide"
    strays_title: str = "Callbacks without an order"
    strays_hint: str = "They are genuine, and no order has their transaction."

    not_found: str = "This page does not exist."
    not_served: str = "This request cannot be served."
    foreign_form: str = "This form came from another site. Open the shop and try again."
    failed_page: str = "Something went wrong here. Your order is kept; please reload the page."

    def note(self, note: Note) -> str:
        """The words of a note."""
        facts = dict(note.facts)
        if "source" in facts:
            facts["source"] = self.sources[facts["source"]]
        return self.notes[note.kind].format(**facts)


ENGLISH = Texts()
