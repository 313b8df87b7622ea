import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class PaymentTest {
    private static Gateway gateway;

    @BeforeAll
    static void start() throws Exception {
        gateway = new Gateway();
    }

    @AfterAll
    static void stop() {
        gateway.close();
    }

    @Test
    void aPaymentIsAcceptedAndItsCallbackComesWhenASecondHasPassed() throws Exception {
        var answer = gateway.pay("/make_payment", collection("T1001", "0244000001"));
        assertTrue(answer.contains("\"response_code\":\"202\""), answer);

        gateway.control("POST", "clock/advance", "{\"seconds\": 1}"); // no test sleeps

        var inbox = gateway.control("GET", "inbox/orders/messages", "");
        assertTrue(inbox.contains("\"trans_status\": \"000/SUCCESS\""), inbox);
        assertTrue(inbox.contains("\"signature\": \"valid\""), inbox);
    }

    @Test
    void aNumberThatEndsIn9IsDeclined() throws Exception {
        var answer = gateway.pay("/make_payment", collection("T1002", "0244000009"));
        assertTrue(answer.contains("\"response_code\":\"015\""), answer);
    }

    private static String collection(String transactionId, String customerNumber) {
        return """
            {
              "service_id": 55,
              "reference": "Order 1001",
              "transaction_id": "%s",
              "trans_type": "CTM",
              "amount": 10.5,
              "nw": "MTN",
              "payment_option": "MOM",
              "customer_number": "%s",
              "callback_url": "%s/_sandbox/inbox/orders",
              "request_time": "2026-01-01 09:00"
            }
            """.formatted(transactionId, customerNumber, gateway.url);
    }
}
