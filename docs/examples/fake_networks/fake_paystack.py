"""A fake Paystack: `python docs/examples/fake_networks/fake_paystack.py PORT WEBHOOK_URL`.

It takes charges of mobile money with the key below. Numbers that end in 9 fail, all others succeed.
As Paystack does, it sends a webhook of a success only.
"""

import asyncio
import hashlib
import hmac
import json
import sys
from urllib.parse import unquote

from fake_server import serve

KEY = "sk_test_fake"
VERIFY = "/transaction/verify/"
PROVIDERS = {"mtn", "atl", "vod"}


class FakePaystack:
    """Charges by their reference."""

    def __init__(self, webhook_url=""):
        self.webhook_url = webhook_url
        self.payments = {}

    def answer(self, method, path, headers, body):
        """The HTTP status and the document that answer a request."""
        if headers.get("authorization") != f"Bearer {KEY}":
            return 401, {"status": False, "message": "Invalid key"}
        if (method, path) == ("POST", "/charge"):
            return self.charge(json.loads(body))
        charge = self.payments.get(unquote(path.removeprefix(VERIFY)))
        if method != "GET" or charge is None:
            return 400, {"status": False, "message": "Transaction reference not found"}
        return 200, {"status": True, "message": "Verification successful", "data": charge}

    def charge(self, asked):
        """Take a charge, unless something is wrong with it."""
        reference, amount, wallet = asked["reference"], asked["amount"], asked["mobile_money"]
        for is_wrong, message in [
            (not asked.get("email"), "Email address is required to create charge"),
            (type(amount) is not int or amount <= 0, "Amount must be an integer"),
            (asked["currency"] != "GHS", "Currency not supported by merchant"),
            (wallet["provider"] not in PROVIDERS, "Invalid provider"),
            (reference in self.payments, "Duplicate charge request for reference"),
        ]:
            if is_wrong:
                return 400, {"status": False, "message": message}
        data = {"id": 59214 + len(self.payments), "status": "pending", "reference": reference}
        data |= {"amount": amount, "currency": "GHS", "customer": {"phone": wallet["phone"]}}
        self.payments[reference] = data
        offline = {"reference": reference, "status": "pay_offline"}
        return 200, {"status": True, "message": "Charge attempted", "data": offline}

    def decide(self, reference):
        """Decide a charge; returns its webhook."""
        charge = self.payments[reference]
        declined = charge["customer"]["phone"].endswith("9")
        charge["status"] = "failed" if declined else "success"
        charge["gateway_response"] = "Declined" if declined else "Approved"
        return None if declined else self.webhook(charge)

    def webhook(self, charge, event="charge.success"):
        """Where a webhook goes, its headers and its body."""
        body = json.dumps({"event": event, "data": charge}).encode()
        return self.webhook_url, {"x-paystack-signature": signature(body, KEY)}, body


def signature(body, key):
    """The signature of a webhook, over the exact bytes of its body."""
    return hmac.new(key.encode(), body, hashlib.sha512).hexdigest()


if __name__ == "__main__":
    asyncio.run(serve(FakePaystack(sys.argv[2]), "fake Paystack", int(sys.argv[1])))
