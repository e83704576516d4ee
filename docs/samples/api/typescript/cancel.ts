// Cancels a message if none of its parts has been sent.
const url = process.env.HELIOGRAPH_URL;
const headers = { Authorization: `Bearer ${process.env.HELIOGRAPH_KEY}` };

const path = `/v1/messages/${process.argv[2]}/cancel`;
const response = await fetch(url + path, { method: "POST", headers });
const result = await response.json();
if (response.status === 409) console.log("too late:", result.detail);
else if (response.ok) console.log(result.status);
else throw new Error(result.detail);
