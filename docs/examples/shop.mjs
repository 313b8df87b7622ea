import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const GATEWAY = "http://127.0.0.1:8233";
const SECRET = "sandbox_secret";
const BASIC = `Basic ${Buffer.from(`sandbox_key:${SECRET}`).toString("base64")}`;
const REFUSED = new Set(["015", "016", "019", "100", "400", "401", "402", "403", "404"]);
const FINAL = { "000": "paid", "001": "failed", "003": "cancelled" };
const PORT = Number(process.argv[2] ?? 8000);
const orders = new Map();
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function post(gateway, path, body) {
  const response = await fetch(`${gateway}/${path}`, {
    method: "POST",
    headers: { Authorization: BASIC, "Content-Type": "application/json" },
    body: JSON.stringify({ service_id: 55, ...body }),
    signal: AbortSignal.timeout(800),
  });
  if (response.status === 429) {
    await pause(1000 * Number(response.headers.get("Retry-After") ?? 1));
    return post(gateway, path, body);
  }
  if (response.status >= 500) throw new Error(`HTTP ${response.status}`);
  return response.json();
}

function apply(order, status) {
  if (order.state === "pending") order.state = FINAL[status] ?? "pending";
}

// A test may name the gateway of an order; outside of tests there is one.
async function place({ phone, network, amount, gateway = GATEWAY }) {
  const order = { id: randomUUID(), amount, gateway, state: "pending", accepted: false, sent: false };
  orders.set(order.id, order); // before the request: the callback may come first
  try {
    const answer = await post(gateway, "make_payment", {
      reference: `Order ${order.id}`, transaction_id: order.id, trans_type: "CTM",
      amount, nw: network, payment_option: "MOM", customer_number: phone, nickname: "Ama",
      callback_url: `http://127.0.0.1:${PORT}/callbacks`, request_time: "2026-01-01 09:00",
    });
    order.accepted = answer.response_code === "202";
    if (REFUSED.has(answer.response_code)) apply(order, "001");
  } catch {
    // No answer is no refusal: the payment may have arrived, so the shop asks.
  }
  order.sent = true;
  return order;
}

async function look(order) {
  try {
    const answer = await post(order.gateway, "get_transaction_status", { transaction_id: order.id });
    if (answer.response_code === "000") apply(order, answer.response_data.status);
    // Never accepted and not found: it did not arrive. Once accepted, 027 means expired.
    if (answer.response_code === "027" && !order.accepted) apply(order, "001");
  } catch {
    // Ask again later.
  }
}

function receive(raw, signature = "") {
  const genuine = createHmac("sha256", SECRET).update(raw).digest("hex");
  if (signature.length !== genuine.length) return 401;
  if (!timingSafeEqual(Buffer.from(genuine), Buffer.from(signature))) return 401;
  const callback = JSON.parse(raw);
  const order = orders.get(callback.trans_ref);
  const same = order?.amount === Number(callback.amount);
  if (same) apply(order, callback.trans_status.slice(0, 3));
  return 200;
}

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const raw = Buffer.concat(chunks);
  const [, path, id] = request.url.split("/");
  if (path === "callbacks") {
    response.writeHead(receive(raw, request.headers["x-service-signature"])).end();
  } else if (request.method === "POST") {
    response.end(JSON.stringify(await place(JSON.parse(raw))));
  } else {
    response.end(JSON.stringify(orders.get(id) ?? {}));
  }
});
server.listen(PORT, "127.0.0.1", () => console.log(`shop on port ${PORT}`));
setInterval(() => {
  for (const order of orders.values()) {
    if (order.state === "pending" && order.sent) look(order);
  }
}, 300);
