// Calls the API with types generated from openapi.json.
import createClient from "openapi-fetch";
import type { paths } from "./heliograph.js";

const client = createClient<paths>({
  baseUrl: process.env.HELIOGRAPH_URL,
  headers: { Authorization: `Bearer ${process.env.HELIOGRAPH_KEY}` },
});

const sent = await client.POST("/v1/send/sms", {
  params: { header: { "Idempotency-Key": "order-7" } },
  body: { originator: "Shop", recipient: "+447700900123", text: "Hello", reference: "order 7" },
});
// A dry run returns a quote, which has no id.
if (!sent.data || !("id" in sent.data)) throw new Error(sent.error?.detail);
const path = { id: sent.data.id };
const fetched = await client.GET("/v1/messages/{id}", { params: { path } });
console.log(fetched.data?.status, fetched.data?.timeline[0]?.event);

const from = sent.data.createdAt;
const query = { status: ["QUEUED" as const], reference: "order 7", from };
const page = await client.GET("/v1/messages", { params: { query } });
console.log(page.data?.data.map((m) => m.id).join() === path.id, page.data?.nextCursor === null);

const cancelled = await client.POST("/v1/messages/{id}/cancel", { params: { path } });
const balance = await client.GET("/v1/balance");
console.log(cancelled.data?.status, balance.data?.available, balance.data?.currency);

const created = await client.POST("/v1/optout-lists", { body: { name: "Newsletter" } });
if (!created.data) throw new Error(created.error.detail);
const list = { path: { id: created.data.id } };
const number = { number: "+447700900123" };
await client.POST("/v1/optout-lists/{id}/numbers", { params: list, body: number });
const listed = await client.GET("/v1/optout-lists/{id}/numbers", { params: list });
console.log(...(listed.data?.data.map((optout) => optout.number) ?? []));

const { error } = await client.POST("/v1/send/sms", {
  body: { originator: "Shop", recipient: "12", text: "Hello" },
});
if (error?.code !== "invalid_request") throw new Error("a two-digit number was accepted");
for (const fault of error.errors ?? []) console.log(fault.pointer, fault.code === "invalid_number");
