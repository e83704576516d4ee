// Prints the available balance.
const url = process.env.HELIOGRAPH_URL;
const headers = { Authorization: `Bearer ${process.env.HELIOGRAPH_KEY}` };

const response = await fetch(`${url}/v1/balance`, { headers });
if (!response.ok) throw new Error(await response.text());
// Amounts are strings: a JavaScript number would lose precision.
const balance: { available: string; currency: string } = await response.json();
console.log(balance.available, balance.currency);
