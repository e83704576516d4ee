// An SMSC made with node-smpp. It answers every submit, sends a receipt in the classic text form, and
// prints what it sees as one JSON line each.
import smpp from "smpp";

const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
let ids = 0;

const server = smpp.createServer({}, (session) => {
  session.on("error", (error) => say({ event: "error", message: String(error) }));
  session.on("bind_transceiver", (pdu) => {
    say({ event: "bound", systemId: pdu.system_id, version: pdu.interface_version });
    session.send(pdu.response());
    // A question of its own, as SMSCs ask it.
    session.enquire_link({}, (answer) => say({ event: "alive", status: answer.command_status }));
  });
  session.on("submit_sm", (pdu) => {
    const id = `node-${++ids}`;
    say({
      event: "submitted",
      id,
      from: pdu.source_addr,
      fromTon: pdu.source_addr_ton,
      to: pdu.destination_addr,
      text: pdu.short_message.message,
      headers: pdu.short_message.udh?.length ?? 0,
      validity: pdu.validity_period,
      registered: pdu.registered_delivery,
    });
    session.send(pdu.response({ message_id: id }));
    session.deliver_sm(
      {
        source_addr: pdu.destination_addr,
        source_addr_ton: 1,
        source_addr_npi: 1,
        destination_addr: pdu.source_addr,
        esm_class: smpp.ESM_CLASS.MC_DELIVERY_RECEIPT,
        short_message: `id:${id} sub:001 dlvrd:001 stat:DELIVRD err:000 text:`,
      },
      (answer) => say({ event: "acknowledged", id, status: answer.command_status }),
    );
  });
  session.on("enquire_link", (pdu) => session.send(pdu.response()));
  session.on("unbind", (pdu) => {
    say({ event: "unbound" });
    session.send(pdu.response());
    session.close();
    server.close();
  });
});

server.listen(0, "127.0.0.1", () => say({ event: "listening", port: server.address().port }));
