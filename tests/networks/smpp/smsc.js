// An SMSC for tests and for docs/networks/smpp.md, made of the npm package smpp, which others wrote.
//
//     NODE_PATH=smsc/node_modules node tests/networks/smpp/smsc.js [PORT]
//
// It takes the account shop with the password smscpass. Each message gets a receipt a moment later:
// UNDELIV for a number that ends in 9, DELIVRD for any other. A test steers it by JSON over HTTP:
// POST {"do": NAME, ...} to the second address that it prints.
"use strict";

const http = require("http");
const smpp = require("smpp");

const ACCOUNT = { system_id: "shop", password: "smscpass" };
const RECEIPT_AFTER_MS = 50;
const IS_RECEIPT = 0x04;

let plan = []; // what to do with the next submits: {status, drop, silent, early, id}
let submits = [];
let automatic = true; // whether it sends receipts by itself
let taken = 0;
let refused = 0; // of the next binds
const bound = new Set();

function receiptText(id, state) {
  const arrived = state === "DELIVRD" ? "001" : "000";
  return (
    `id:${id} sub:001 dlvrd:${arrived} submit date:2601010900 done date:2601010901 ` +
    `stat:${state} err:000 text:`
  );
}

// Send a receipt over the newest bind; resolves to the status that it is answered with.
function sendReceipt(id, state) {
  return new Promise((resolve, reject) => {
    const session = [...bound].pop();
    if (!session) return reject(new Error("no connection is bound"));
    session.once("close", () => resolve(null));
    session.deliver_sm(
      {
        source_addr: "233244000001",
        destination_addr: "Shop",
        esm_class: IS_RECEIPT,
        short_message: receiptText(id, state),
      },
      (answer) => resolve(answer.command_status),
    );
  });
}

async function onSubmit(session, pdu) {
  const wanted = plan.shift() || {};
  const status = wanted.status || 0;
  const id = wanted.id || String(++taken);
  submits.push({
    source_addr: pdu.source_addr,
    source_addr_ton: pdu.source_addr_ton,
    destination_addr: pdu.destination_addr,
    data_coding: pdu.data_coding,
    registered_delivery: pdu.registered_delivery,
    text: pdu.short_message.message,
    udh: (pdu.short_message.udh || []).map((element) => [...element]),
    status,
  });
  if (wanted.drop) return session.destroy();
  if (wanted.silent) return undefined;
  if (wanted.early) await sendReceipt(id, wanted.early);
  session.send(pdu.response({ command_status: status, message_id: status ? "" : id }));
  if (automatic && !status && pdu.registered_delivery) {
    const state = pdu.destination_addr.endsWith("9") ? "UNDELIV" : "DELIVRD";
    setTimeout(() => sendReceipt(id, state).catch(() => {}), RECEIPT_AFTER_MS);
  }
  return undefined;
}

const server = smpp.createServer((session) => {
  session.on("error", () => {});
  session.on("close", () => bound.delete(session));
  session.on("bind_transceiver", (pdu) => {
    const known = pdu.system_id === ACCOUNT.system_id && pdu.password === ACCOUNT.password;
    const status = !known ? smpp.ESME_RINVPASWD : refused > 0 ? smpp.ESME_RBINDFAIL : 0;
    refused -= 1;
    session.send(pdu.response({ command_status: status, system_id: "smsc" }));
    if (!status) bound.add(session);
  });
  session.on("submit_sm", (pdu) => onSubmit(session, pdu));
  session.on("enquire_link", (pdu) => session.send(pdu.response()));
  session.on("unbind", (pdu) => {
    session.send(pdu.response());
    session.close();
  });
});

const commands = {
  reset() {
    plan = [];
    submits = [];
    automatic = false;
    refused = 0;
    for (const session of bound) session.destroy();
  },
  plan: (asked) => void (plan = asked.plan),
  seen: () => ({ submits, bound: bound.size }),
  drop: () => bound.forEach((session) => session.destroy()),
  refuse: (asked) => void (refused = asked.times),
  automatic: (asked) => void (automatic = asked.on),
  receipt: async (asked) => ({ status: await sendReceipt(asked.id, asked.state) }),
};

const control = http.createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const asked = JSON.parse(Buffer.concat(chunks));
  try {
    response.end(JSON.stringify((await commands[asked.do](asked)) || {}));
  } catch (error) {
    response.writeHead(409).end(JSON.stringify({ error: error.message }));
  }
});

server.listen(Number(process.argv[2] || 0), "127.0.0.1", () => {
  control.listen(0, "127.0.0.1", () => {
    console.log(`SMSC ready at smpp://127.0.0.1:${server.address().port}`);
    console.log(`steered at http://127.0.0.1:${control.address().port}`);
  });
});
