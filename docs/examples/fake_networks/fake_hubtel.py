"""A fake Hubtel: `python docs/examples/fake_networks/fake_hubtel.py PORT`.

It receives mobile money for the account below. Numbers that end in 9 fail, all others succeed. As
Hubtel does, it sends an unsigned callback of both, and says Unpaid of what is not paid.
"""

import asyncio
import base64
import json
import sys
from urllib.parse import parse_qs, urlsplit

from fake_server import serve

POS_SALES_ID = "11684"
API_ID, API_KEY = "fake-id", "fake-api-key"
BASIC = "Basic " + base64.b64encode(f"{API_ID}:{API_KEY}".encode()).decode()
RECEIVE = f"/merchantaccount/merchants/{POS_SALES_ID}/receive/mobilemoney"
STATUS = f"/transactions/{POS_SALES_ID}/status"
CHANNELS = {"mtn-gh", "vodafone-gh", "tigo-gh"}


class FakeHubtel:
    """Payments by their ClientReference."""

    def __init__(self, alphanumeric_only=True):
        self.alphanumeric_only = alphanumeric_only  # Hubtel's rule for ClientReference
        self.payments = {}

    def answer(self, method, path, headers, body):
        """The HTTP status and the document that answer a request."""
        if headers.get("authorization") != BASIC:
            return 401, {"Message": "Unauthorized", "ResponseCode": "4101"}
        url = urlsplit(path)
        if (method, url.path) == ("POST", RECEIVE):
            return self.receive(json.loads(body))
        reference = parse_qs(url.query).get("clientReference", [""])[0]
        if (method, url.path) != ("GET", STATUS) or reference not in self.payments:
            return 404, {"message": "Not found", "data": None}
        data = self.payments[reference]
        names = ("status", "transactionId", "clientReference", "currencyCode", "amount")
        said = {name: data[name] for name in names if name in data}
        return 200, {"message": "Successful", "responseCode": "0000", "data": said}

    def receive(self, asked):
        """Take a request, unless something is wrong with it."""
        reference, amount = asked["ClientReference"], asked["Amount"]
        numbers = (asked["CustomerMsisdn"].startswith("233"), asked["Channel"] in CHANNELS)
        texts = (asked["PrimaryCallbackUrl"], asked["Description"], len(reference) <= 36)
        is_plain = reference.isalnum() or not self.alphanumeric_only
        if not all((*numbers, *texts, type(amount) in (int, float), is_plain)):
            return 400, {"Message": "Validation errors", "ResponseCode": "4000"}
        identifier = f"hubtel-{len(self.payments) + 1}"
        data = {"status": "Unpaid", "transactionId": identifier, "clientReference": reference}
        self.payments[reference] = {**data, "currencyCode": None, "amount": amount, "asked": asked}
        message = "Transaction pending. Expect callback request for final state"
        data = self.said(reference, asked["Description"])
        return 200, {"Message": message, "ResponseCode": "0001", "Data": data}

    def said(self, reference, description):
        """The member `Data` of an answer and of a callback."""
        paid = self.payments[reference]
        data = {"TransactionId": paid["transactionId"], "Description": description}
        return {**data, "ClientReference": reference, "Amount": paid["amount"], "Charges": 0.05}

    def decide(self, reference):
        """Decide a payment; returns its callback."""
        asked = self.payments[reference]["asked"]
        failed = asked["CustomerMsisdn"].endswith("9")
        self.payments[reference]["status"] = "Unpaid" if failed else "Paid"
        code, message = ("2001", "failed") if failed else ("0000", "success")
        data = self.said(reference, "FAILED" if failed else "approved and processed successfully")
        body = json.dumps({"ResponseCode": code, "Message": message, "Data": data}).encode()
        return asked["PrimaryCallbackUrl"], {"Content-Type": "application/json"}, body


if __name__ == "__main__":
    asyncio.run(serve(FakeHubtel(), "fake Hubtel", int(sys.argv[1])))
