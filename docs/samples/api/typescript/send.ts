// Sends a message once, however often it is tried, and waits until it has arrived.
import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";

const url = process.env.HELIOGRAPH_URL;
const headers = {
  Authorization: `Bearer ${process.env.HELIOGRAPH_KEY}`,
  "Content-Type": "application/json",
};

async function json(path: string, init: RequestInit = {}) {
  const answer = await fetch(url + path, { ...init, headers: { ...headers, ...init.headers } });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

let message = await json("/v1/send/sms", {
  method: "POST",
  // Store the key beside the order: whoever tries again has to use the same one.
  headers: { "Idempotency-Key": randomUUID() },
  body: JSON.stringify({
    originator: "Shop",
    recipient: "+447700900123",
    text: "Your parcel comes at 9",
    reference: "order 7",
    validitySeconds: 3600,
    maxParts: 1,
  }),
});

while (["QUEUED", "SENT"].includes(message.status)) {
  await setTimeout(500);
  message = await json(`/v1/messages/${message.id}`);
}
console.log(message.status, message.recipient, message.reference);
