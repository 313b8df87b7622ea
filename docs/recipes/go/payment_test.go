package shop

import "testing"

func collection(gateway *Gateway) map[string]any {
	return map[string]any{
		"service_id":      55,
		"reference":       "Order 1001",
		"transaction_id":  "T1001",
		"trans_type":      "CTM",
		"amount":          10.5,
		"nw":              "MTN",
		"payment_option":  "MOM",
		"customer_number": "0244000001",
		"callback_url":    gateway.URL + "/_sandbox/inbox/orders",
		"request_time":    "2026-01-01 09:00",
	}
}

func TestAPaymentIsAcceptedAndItsCallbackComesWhenASecondHasPassed(t *testing.T) {
	gateway := StartGateway(t)

	var answer struct {
		Code string `json:"response_code"`
	}
	gateway.Pay("/make_payment", collection(gateway), &answer)
	if answer.Code != "202" {
		t.Fatalf("the answer was %s", answer.Code)
	}

	var clock map[string]any // no test sleeps
	gateway.Control("POST", "clock/advance", map[string]any{"seconds": 1}, &clock)

	var inbox struct {
		Messages []struct {
			JSON      map[string]string
			Signature string
		}
	}
	gateway.Control("GET", "inbox/orders/messages", nil, &inbox)
	if len(inbox.Messages) != 1 || inbox.Messages[0].Signature != "valid" {
		t.Fatalf("the inbox has %v", inbox)
	}
	if status := inbox.Messages[0].JSON["trans_status"]; status != "000/SUCCESS" {
		t.Fatalf("the callback says %s", status)
	}
}

func TestANumberThatEndsIn9IsDeclined(t *testing.T) {
	gateway := StartGateway(t)
	declined := collection(gateway)
	declined["customer_number"] = "0244000009"

	var answer struct {
		Code string `json:"response_code"`
	}
	gateway.Pay("/make_payment", declined, &answer)
	if answer.Code != "015" {
		t.Fatalf("the answer was %s", answer.Code)
	}
}
