// Sends a message, retries temporary errors, and prints what is wrong otherwise.
import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";

const url = process.env.HELIOGRAPH_URL;
const headers = {
  Authorization: `Bearer ${process.env.HELIOGRAPH_KEY}`,
  "Content-Type": "application/json",
};

/** Returns the accepted message, or the problem details. */
async function send(body: object, attempts = 5) {
  const init = {
    method: "POST",
    headers: { ...headers, "Idempotency-Key": randomUUID() },
    body: JSON.stringify(body),
  };
  for (let attempt = 1; ; attempt++) {
    let wait = 2 ** attempt;
    try {
      const response = await fetch(`${url}/v1/send/sms`, init);
      const result = await response.json();
      const retry = [408, 429].includes(response.status) || response.status >= 500;
      if (!(retry || result.code === "request_in_flight") || attempt === attempts) return result;
      wait = Number(response.headers.get("Retry-After") ?? wait);
    } catch (error) {
      // The message may have been accepted: the idempotency key makes a retry safe.
      if (attempt === attempts) throw error;
    }
    await setTimeout(wait * 1000);
  }
}

const invalid = { originator: "Shop", recipient: "12", text: "Hello", shedule: "tomorrow" };
const problem = await send(invalid);
for (const fault of problem.errors ?? []) console.log(fault.pointer, fault.code);
const message = await send({ originator: "Shop", recipient: "+447700900123", text: "Hello" });
console.log(message.status);
