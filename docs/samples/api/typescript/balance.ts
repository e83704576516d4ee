// Shows what may be spent.
const url = process.env.HELIOGRAPH_URL;
const headers = { Authorization: `Bearer ${process.env.HELIOGRAPH_KEY}` };

const answer = await fetch(`${url}/v1/balance`, { headers });
if (!answer.ok) throw new Error(await answer.text());
// Strings, and to be kept so: a number of JavaScript would lose cents.
const balance: { available: string; currency: string } = await answer.json();
console.log(balance.available, balance.currency);
