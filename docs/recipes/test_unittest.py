"""The gateway with unittest: one for a class, reset before each test."""

import json
import unittest
import urllib.request

from sandbox_sim import SandboxGateway


class SmsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.gateway = cls.enterClassContext(SandboxGateway())

    def setUp(self):
        self.gateway.renew()

    def send(self, to, text):
        message = {
            "service_id": self.gateway.service_id,
            "customer_number": to,
            "msg_body": text,
            "sender_id": "Shop",
        }
        request = urllib.request.Request(
            f"{self.gateway.url}/sms/send", json.dumps(message).encode(), self.gateway.headers
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["response_code"]

    def test_a_code_is_sent(self):
        self.assertEqual(self.send("0244000001", "Your code is 1234"), "370")

        self.gateway.advance(seconds=1)

        self.gateway.sms.expect_text(to="0244000001", contains="code", status="SENT")

    def test_a_message_that_cannot_be_delivered_is_refunded(self):
        self.send("0244000009", "Your code is 1234")

        self.gateway.advance(seconds=1)

        self.gateway.sms.expect_one(to="0244000009", status="REFUNDED")


if __name__ == "__main__":
    unittest.main()
