import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { startGateway } from "./gateway.mjs";

let gateway;
before(async () => { gateway = await startGateway(); });
after(() => gateway?.stop());

const collection = (fields) => ({
  service_id: 55,
  reference: "Order 1001",
  transaction_id: "T1001",
  trans_type: "CTM",
  amount: 10.5,
  nw: "MTN",
  payment_option: "MOM",
  customer_number: "0244000001",
  callback_url: `${gateway.url}/_sandbox/inbox/orders`,
  request_time: "2026-01-01 09:00",
  ...fields,
});

test("a payment is accepted, and its callback comes when a second has passed", async () => {
  const answer = await gateway.pay("/make_payment", collection());
  assert.equal(answer.response_code, "202");

  await gateway.control("POST", "clock/advance", { seconds: 1 }); // no test sleeps

  const [callback] = await gateway.inbox("orders");
  assert.equal(callback.json.trans_status, "000/SUCCESS");
  assert.equal(callback.signature, "valid");
});

test("a receiver that is down gets its callback five minutes later", async () => {
  let down = true;
  const bodies = [];
  const shop = createServer((request, response) => {
    let body = "";
    request.on("data", (some) => { body += some; });
    request.on("end", () => {
      bodies.push(JSON.parse(body));
      response.writeHead(down ? 503 : 200).end();
    });
  });
  shop.listen(0, "127.0.0.1");
  await once(shop, "listening");

  const callback_url = `http://127.0.0.1:${shop.address().port}/callback`;
  await gateway.pay("/make_payment", collection({ transaction_id: "T1002", callback_url }));
  await gateway.control("POST", "clock/advance", { seconds: 1 });
  down = false;
  await gateway.control("POST", "clock/advance", { seconds: 300 });

  assert.deepEqual(bodies.map((body) => body.trans_ref), ["T1002", "T1002"]);
  shop.close();
  shop.closeAllConnections();
});

test("a number that ends in 9 is declined", async () => {
  const declined = collection({ transaction_id: "T1003", customer_number: "0244000009" });
  const answer = await gateway.pay("/make_payment", declined);
  assert.equal(answer.response_code, "015");
});
