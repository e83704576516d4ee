// Receives and verifies Heliograph webhooks, and prints `verified TYPE ID` for each.
//
// npm ci
// WEBHOOK_SECRET=whsec_… PORT=9000 node receiver.mjs
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const webhook = new Webhook(process.env.WEBHOOK_SECRET);

/** Returns the response to a POST with this raw body: a status, and an error message. */
function receive(body, headers) {
  let event;
  try {
    event = webhook.verify(body, headers);
  } catch (error) {
    return [400, `not verified: ${error.message}`];
  }
  // The same id can arrive again: process each id only once.
  console.log(`verified ${event.type} ${headers["webhook-id"]}`);
  return [204, ""];
}

const limit = 1 << 20;

const server = createServer(async (request, response) => {
  const respond = ([status, text]) => response.writeHead(status).end(text);
  const tooLong = [413, "the body is longer than 1 MiB"];
  if (Number(request.headers["content-length"]) > limit) return respond(tooLong);
  const chunks = [];
  let size = 0;
  try {
    for await (const chunk of request) {
      size += chunk.length;
      if (size > limit) return respond(tooLong);
      chunks.push(chunk);
    }
  } catch {
    return; // The client has disconnected.
  }
  respond(receive(Buffer.concat(chunks), request.headers));
});

server.listen(Number(process.env.PORT), "127.0.0.1");
