import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const installed = fileURLToPath(new URL(".venv/bin/sandbox-sim", import.meta.url));
const program = process.env.SANDBOX_SIM ?? (existsSync(installed) ? installed : "sandbox-sim");

export async function startGateway(...settings) {
  const options = settings.flatMap((setting) => ["--set", setting]);
  const child = spawn(
    program,
    ["serve", "--json", "--port", "0", "--store", "memory:", ...options],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const lines = createInterface({ input: child.stdout });
  const [line] = await Promise.race([
    once(lines, "line"),
    once(child, "exit").then(
      ([code]) => { throw new Error(`the gateway ended with exit code ${code}`); },
      (error) => { throw new Error(`${program} does not start; set SANDBOX_SIM`, { cause: error }); },
    ),
  ]);
  return new Gateway(JSON.parse(line).url, child);
}

class Gateway {
  constructor(url, child) {
    this.url = url;
    this.child = child;
  }

  // A request of the gateway's own interface.
  pay(path, body) {
    const credentials = Buffer.from("sandbox_key:sandbox_secret").toString("base64");
    return this.send("POST", path, body, { Authorization: `Basic ${credentials}` });
  }

  // A request of the control API: clock, overrides, faults, callbacks …
  async control(method, path, body) {
    const answer = await this.send(method, `/_sandbox/${path}`, body);
    if (answer.error) throw new Error(`${method} ${path}: ${answer.error.message}`);
    return answer;
  }

  // The newest callbacks that came into a built-in inbox, oldest first.
  async inbox(name) {
    const { messages } = await this.control("GET", `inbox/${name}/messages?limit=100`);
    return messages.reverse();
  }

  async send(method, path, body, headers = {}) {
    const response = await fetch(this.url + path, {
      method,
      headers: { "Content-Type": "application/json", ...headers },
      body: body && JSON.stringify(body),
    });
    return response.json();
  }

  async stop() {
    this.child.kill("SIGTERM");
    await once(this.child, "exit");
  }
}
