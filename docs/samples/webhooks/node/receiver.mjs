// Receives Heliograph's webhooks, verifies each, and prints `verified TYPE ID`.
//
// npm ci
// WEBHOOK_SECRET=whsec_… PORT=9000 node receiver.mjs
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const webhook = new Webhook(process.env.WEBHOOK_SECRET);

/** What to answer to a POST with this raw body: a status, and words when it is refused. */
function receive(body, headers) {
  let event;
  try {
    event = webhook.verify(body, headers);
  } catch (why) {
    return [400, `not verified: ${why.message}`];
  }
  // The same id may come again: what was done for it once is not done twice.
  console.log(`verified ${event.type} ${headers["webhook-id"]}`);
  return [204, ""];
}

const limit = 1 << 20;

const server = createServer(async (request, response) => {
  const answer = ([status, words]) => response.writeHead(status).end(words);
  const tooLong = [413, "the body is longer than 1 MiB"];
  if (Number(request.headers["content-length"]) > limit) return answer(tooLong);
  const chunks = [];
  let size = 0;
  try {
    for await (const chunk of request) {
      size += chunk.length;
      if (size > limit) return answer(tooLong);
      chunks.push(chunk);
    }
  } catch {
    return; // Whoever was sending has gone.
  }
  answer(receive(Buffer.concat(chunks), request.headers));
});

server.listen(Number(process.env.PORT), "127.0.0.1");
