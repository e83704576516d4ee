// Lists the messages of an order, page by page, with their timelines.
const url = process.env.HELIOGRAPH_URL;
const headers = { Authorization: `Bearer ${process.env.HELIOGRAPH_KEY}` };

type Message = { id: string; status: string; timeline: { event: string; at: string | null }[] };
type Page = { data: Message[]; nextCursor: string | null };

async function* messages(filters: Record<string, string>): AsyncGenerator<Message> {
  for (let query = new URLSearchParams(filters); ; ) {
    const response = await fetch(`${url}/v1/messages?${query}`, { headers });
    if (!response.ok) throw new Error(await response.text());
    const page: Page = await response.json();
    yield* page.data;
    if (page.nextCursor === null) return;
    query.set("cursor", page.nextCursor);
  }
}

for await (const message of messages({ reference: "order 7", limit: "2" })) {
  console.log(message.status, ...message.timeline.map((step) => step.event));
}
