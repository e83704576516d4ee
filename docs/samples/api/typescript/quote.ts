// Gets the encoding, the number of parts and the price of a message without sending it.
const url = process.env.HELIOGRAPH_URL;
const headers = {
  Authorization: `Bearer ${process.env.HELIOGRAPH_KEY}`,
  "Content-Type": "application/json",
};

const response = await fetch(`${url}/v1/send/sms`, {
  method: "POST",
  headers,
  body: JSON.stringify({
    originator: "Shop",
    recipient: "+447700900123",
    text: "Ваш заказ прибыл",
    dryRun: true,
  }),
});
if (!response.ok) throw new Error(await response.text());
const quote = await response.json();
console.log(quote.encoding, quote.parts, quote.price, quote.currency);
