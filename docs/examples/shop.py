"""A shop that waits for callbacks and checks their signature; `certify` finds what it lacks."""

import hashlib
import hmac
import uuid

import requests
from flask import Flask, abort, jsonify, request

GATEWAY = "http://127.0.0.1:8233"
AUTH = ("sandbox_key", "sandbox_secret")
app = Flask(__name__)
orders = {}


@app.post("/orders")
def place():
    wanted = request.get_json()
    number = uuid.uuid4().hex
    orders[number] = "pending"
    payment = {
        "service_id": 55,
        "reference": f"Order {number}",
        "transaction_id": number,
        "trans_type": "CTM",
        "amount": wanted["amount"],
        "nw": wanted["network"],
        "payment_option": "MOM",
        "customer_number": wanted["phone"],
        "nickname": "Ama",
        "callback_url": f"{request.host_url}callbacks",
        "request_time": "2026-01-01 09:00",
    }
    answer = requests.post(f"{GATEWAY}/make_payment", json=payment, auth=AUTH, timeout=1)
    if answer.json()["response_code"] != "202":
        orders[number] = "failed"
    return jsonify(id=number)


@app.get("/orders/<number>")
def show(number):
    return jsonify(state=orders[number])


@app.post("/callbacks")
def callback():
    genuine = hmac.new(AUTH[1].encode(), request.get_data(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(genuine, request.headers.get("X-Service-Signature", "")):
        abort(401)
    body = request.get_json()
    paid = body["trans_status"].startswith("000")
    orders[body["trans_ref"]] = "paid" if paid else "failed"
    return ""
