"""An smpplib client: submits texts, waits for their receipts, and prints both as JSON Lines."""

import json
import sys

import smpplib.client
import smpplib.consts
import smpplib.gsm

TEXTS = ["Hello from smpplib", "A long text, " * 20, "Grüße, 你好 😀"]

accepted, receipts = [], []


def received(pdu):
    """Records a receipt; the library acknowledges it."""
    receipts.append(pdu.receipted_message_id.decode())
    emit("receipt", id=pdu.receipted_message_id.decode(), state=pdu.message_state,
        text=pdu.short_message.decode())


def emit(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


client = smpplib.client.Client("127.0.0.1", int(sys.argv[1]), allow_unknown_opt_params=False)
client.set_message_sent_handler(lambda pdu: accepted.append(pdu.message_id.decode()))
client.set_message_received_handler(received)
client.connect()
client.bind_transceiver(system_id="python", password="any")

sent = 0
for text in TEXTS:
    parts, coding, esm_class = smpplib.gsm.make_parts(text)
    for part in parts:
        client.send_message(
            source_addr_ton=smpplib.consts.SMPP_TON_ALNUM,
            source_addr="Python",
            dest_addr_ton=smpplib.consts.SMPP_TON_INTL,
            destination_addr="447700900123",
            short_message=part,
            data_coding=coding,
            esm_class=esm_class,
            registered_delivery=True,
        )
        sent += 1

while len(accepted) < sent or len(receipts) < sent:
    client.read_once()

emit("done", accepted=accepted, receipts=receipts)
client.unbind()
client.disconnect()
