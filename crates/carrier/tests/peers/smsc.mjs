// A node-smpp SMSC that accepts every submit, sends a receipt in the format of SMPP 3.4 Appendix B,
// and prints its events as JSON Lines.
import smpp from "smpp";

const emit = (event) => process.stdout.write(JSON.stringify(event) + "\n");
let ids = 0;

const server = smpp.createServer({}, (session) => {
  session.on("error", (error) => emit({ event: "error", message: String(error) }));
  session.on("bind_transceiver", (pdu) => {
    emit({ event: "bound", systemId: pdu.system_id, version: pdu.interface_version });
    session.send(pdu.response());
    // SMSCs send enquire_link, too.
    session.enquire_link({}, (answer) => emit({ event: "alive", status: answer.command_status }));
  });
  session.on("submit_sm", (pdu) => {
    const id = `node-${++ids}`;
    emit({
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
      (answer) => emit({ event: "acknowledged", id, status: answer.command_status }),
    );
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
