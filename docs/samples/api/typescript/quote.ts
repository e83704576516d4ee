// Asks what a message would be and cost, without sending it.
const url = process.env.HELIOGRAPH_URL;
const headers = {
  Authorization: `Bearer ${process.env.HELIOGRAPH_KEY}`,
  "Content-Type": "application/json",
};

const answer = await fetch(`${url}/v1/send/sms`, {
  method: "POST",
  headers,
  body: JSON.stringify({
    originator: "Shop",
    recipient: "+447700900123",
    text: "Ваш заказ прибыл",
    dryRun: true,
  }),
});
if (!answer.ok) throw new Error(await answer.text());
const quote = await answer.json();
console.log(quote.encoding, quote.parts, quote.price, quote.currency);
