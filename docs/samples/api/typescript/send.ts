// Sends a message with an idempotency key and waits until it is delivered.
import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";

const url = process.env.HELIOGRAPH_URL;
const headers = {
  Authorization: `Bearer ${process.env.HELIOGRAPH_KEY}`,
  "Content-Type": "application/json",
};

async function json(path: string, init: RequestInit = {}) {
  const response = await fetch(url + path, { ...init, headers: { ...headers, ...init.headers } });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

let message = await json("/v1/send/sms", {
  method: "POST",
  // Store the key with the order: every retry has to use the same key.
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
