// Calls a message back, if no part of it has gone out.
const url = process.env.HELIOGRAPH_URL;
const headers = { Authorization: `Bearer ${process.env.HELIOGRAPH_KEY}` };

const path = `/v1/messages/${process.argv[2]}/cancel`;
const answer = await fetch(url + path, { method: "POST", headers });
const told = await answer.json();
if (answer.status === 409) console.log("too late:", told.detail);
else if (answer.ok) console.log(told.status);
else throw new Error(told.detail);
