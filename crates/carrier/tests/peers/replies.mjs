// A node-smpp SMSC that answers one submit with replies: one in each encoding, as node-smpp encodes
// them, and one whose three parts arrive out of order. Prints its events as JSON Lines.
import smpp from "smpp";

const emit = (event) => process.stdout.write(JSON.stringify(event) + "\n");

const header = (sequence) => Buffer.from([0x05, 0x00, 0x03, 0x2a, 0x03, sequence]);

const REPLIES = [
  { data_coding: 0, short_message: { message: "GSM: {50} € é" } },
  { data_coding: 3, short_message: { message: "Latin-1: Grüße" } },
  { data_coding: 8, short_message: { message: "UCS-2: Да, 你好 😀" } },
  { data_coding: 0, short_message: { udh: header(3), message: "and three." } },
  { data_coding: 0, short_message: { udh: header(1), message: "Part one, " } },
  { data_coding: 0, short_message: { udh: header(2), message: "two @ two, " } },
];

const server = smpp.createServer({}, (session) => {
  session.on("error", (error) => emit({ event: "error", message: String(error) }));
  session.on("bind_transceiver", (pdu) => session.send(pdu.response()));
  session.on("submit_sm", (pdu) => {
    session.send(pdu.response({ message_id: "1" }));
    for (const reply of REPLIES) {
      session.deliver_sm(
        {
          source_addr: pdu.destination_addr,
          source_addr_ton: 1,
          source_addr_npi: 1,
          destination_addr: pdu.source_addr,
          destination_addr_ton: pdu.source_addr_ton,
          destination_addr_npi: pdu.source_addr_npi,
          esm_class: reply.short_message.udh ? smpp.ESM_CLASS.UDH_INDICATOR : 0,
          ...reply,
        },
        (answer) => emit({ event: "acknowledged", status: answer.command_status }),
      );
    }
  });
  session.on("enquire_link", (pdu) => session.send(pdu.response()));
  session.on("unbind", (pdu) => {
    emit({ event: "unbound" });
    session.send(pdu.response());
    session.close();
    server.close();
  });
});

server.listen(0, "127.0.0.1", () => emit({ event: "listening", port: server.address().port }));
