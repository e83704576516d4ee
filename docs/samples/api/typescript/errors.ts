// Sends with retries where they help, and says what is wrong where they do not.
import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";

const url = process.env.HELIOGRAPH_URL;
const headers = {
  Authorization: `Bearer ${process.env.HELIOGRAPH_KEY}`,
  "Content-Type": "application/json",
};

/** The accepted message, or the problem. */
async function send(body: object, attempts = 5) {
  const init = {
    method: "POST",
    headers: { ...headers, "Idempotency-Key": randomUUID() },
    body: JSON.stringify(body),
  };
  for (let attempt = 1; ; attempt++) {
    let wait = 2 ** attempt;
    try {
      const answer = await fetch(`${url}/v1/send/sms`, init);
      const told = await answer.json();
      const again = [408, 429].includes(answer.status) || answer.status >= 500;
      if (!(again || told.code === "request_in_flight") || attempt === attempts) return told;
      wait = Number(answer.headers.get("Retry-After") ?? wait);
    } catch (error) {
      // Nobody knows whether it was accepted: the key makes it safe to ask again.
      if (attempt === attempts) throw error;
    }
    await setTimeout(wait * 1000);
  }
}

const wrong = { originator: "Shop", recipient: "12", text: "Hello", shedule: "tomorrow" };
const problem = await send(wrong);
for (const fault of problem.errors ?? []) console.log(fault.pointer, fault.code);
const message = await send({ originator: "Shop", recipient: "+447700900123", text: "Hello" });
console.log(message.status);
