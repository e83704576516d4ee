//! A scripted SMPP peer, controlled PDU by PDU by the test: an SMSC or a client.

use bytes::{Buf, BufMut, BytesMut};
use heliograph_carrier::smpp::body::{Address, Bind, ShortMessage, put_tlv};
use heliograph_carrier::smpp::command::{esm, id};
use heliograph_carrier::smpp::pdu::{self, PduHeader};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(20);

/// The listener of a scripted SMSC.
pub(crate) struct ScriptedListener(TcpListener);

impl ScriptedListener {
    pub(crate) async fn open() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    /// Accepts the next connection and reads its bind request.
    pub(crate) async fn accept_bind(&self) -> (ScriptedPeer, PduHeader) {
        let accepted = timeout(TIMEOUT, self.0.accept()).await;
        let (stream, _) = accepted.expect("no connection in time").unwrap();
        let mut peer = ScriptedPeer::new(stream);
        let header = peer.expect(id::BIND_TRANSCEIVER).await.0;
        (peer, header)
    }

    /// Accepts the next connection and its bind.
    pub(crate) async fn accept_and_bind(&self) -> ScriptedPeer {
        let (mut peer, header) = self.accept_bind().await;
        peer.write(|out| pdu::put_message_id(out, header.response(0), b"peer")).await;
        peer
    }
}

/// An open connection.
pub(crate) struct ScriptedPeer {
    stream: TcpStream,
    inbound: BytesMut,
}

impl ScriptedPeer {
    fn new(stream: TcpStream) -> Self {
        Self { stream, inbound: BytesMut::new() }
    }

    /// Connects as a client that is not bound.
    pub(crate) async fn connect(port: u16) -> Self {
        Self::new(TcpStream::connect(("127.0.0.1", port)).await.unwrap())
    }

    /// Connects as a client with this kind of bind.
    pub(crate) async fn client(port: u16, command: u32, system_id: &str) -> Self {
        let mut peer = Self::connect(port).await;
        let bind = Bind {
            system_id: system_id.as_bytes(),
            password: b"any",
            system_type: b"",
            interface_version: 0x34,
        };
        peer.write(|out| pdu::put(out, PduHeader::request(command, 1), |out| bind.encode(out)))
            .await;
        let (header, _) = peer.next().await;
        assert_eq!(header, PduHeader::request(command, 1).response(0));
        peer
    }

    /// Writes the PDUs that `write` appends.
    pub(crate) async fn write(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let mut out = BytesMut::new();
        write(&mut out);
        self.stream.write_all(&out).await.unwrap();
    }

    /// Writes a PDU without a body.
    pub(crate) async fn write_header(&mut self, header: PduHeader) {
        self.write(|out| pdu::put_header(out, header)).await;
    }

    /// Answers a submit_sm.
    pub(crate) async fn answer(&mut self, header: PduHeader, status: u32, id: &str) {
        self.write(|out| pdu::put_message_id(out, header.response(status), id.as_bytes())).await;
    }

    /// Returns the next PDU; `None` when the other side has closed the connection.
    pub(crate) async fn read(&mut self) -> Option<(PduHeader, Vec<u8>)> {
        loop {
            let mut rest = self.inbound.as_ref();
            if let Some(pdu) = pdu::take(&mut rest).unwrap() {
                let read = (pdu.header, pdu.body.to_vec());
                let used = self.inbound.len() - rest.len();
                self.inbound.advance(used);
                return Some(read);
            }
            let read = timeout(TIMEOUT, self.stream.read_buf(&mut self.inbound)).await;
            if read.expect("no PDU in time").unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    /// Returns the next PDU.
    pub(crate) async fn next(&mut self) -> (PduHeader, Vec<u8>) {
        self.read().await.expect("the other side has closed the connection")
    }

    /// Returns the next PDU, which must be this command.
    pub(crate) async fn expect(&mut self, command: u32) -> (PduHeader, Vec<u8>) {
        let (header, body) = self.next().await;
        assert_eq!(header.command, command, "{header:x?}");
        (header, body)
    }

    /// Asserts that the other side sends nothing: sends enquire_link twice and expects only the two
    /// responses. Between them the other side has done all its pending work.
    pub(crate) async fn expect_silence(&mut self) {
        for sequence in [0x00AB_CDEF, 0x00FE_DCBA] {
            let header = PduHeader::request(id::ENQUIRE_LINK, sequence);
            self.write_header(header).await;
            assert_eq!(self.next().await.0, header.response(0));
        }
    }

    /// Sends a deliver_sm from `number`.
    pub(crate) async fn deliver(&mut self, sequence: u32, number: &str, esm_class: u8, text: &str) {
        self.write(|out| put_deliver(out, sequence, number, esm_class, text)).await;
    }

    /// Sends a receipt that reports the delivery of message `id` to `number`.
    pub(crate) async fn receipt(&mut self, sequence: u32, number: &str, id: &str) {
        let text = format!("id:{id} stat:DELIVRD err:000");
        self.deliver(sequence, number, esm::RECEIPT, &text).await;
    }

    /// Sends a submit_sm to `number` that requests a receipt.
    pub(crate) async fn submit(&mut self, sequence: u32, number: &str) {
        let message = ShortMessage {
            source: Address { ton: 5, npi: 0, digits: b"Shop" },
            destination: Address { ton: 1, npi: 1, digits: number.as_bytes() },
            registered_delivery: 1,
            text: b"Hello from the peer",
            ..ShortMessage::default()
        };
        let header = PduHeader::request(id::SUBMIT_SM, sequence);
        self.write(|out| pdu::put(out, header, |out| message.encode(out))).await;
    }

    /// Sends `message` as deliver_sm with these optional parameters.
    pub(crate) async fn deliver_message(
        &mut self,
        sequence: u32,
        message: ShortMessage<'_>,
        optional: &[(u16, &[u8])],
    ) {
        let header = PduHeader::request(id::DELIVER_SM, sequence);
        self.write(|out| {
            pdu::put(out, header, |out| {
                message.encode(out);
                for (tag, value) in optional {
                    put_tlv(out, *tag, value);
                }
            });
        })
        .await;
    }

    /// Writes arbitrary bytes.
    pub(crate) async fn write_bytes(&mut self, bytes: &[u8]) {
        self.write(|out| out.put_slice(bytes)).await;
    }
}

/// Appends a deliver_sm from `number`.
pub(crate) fn put_deliver(
    out: &mut BytesMut,
    sequence: u32,
    number: &str,
    esm_class: u8,
    text: &str,
) {
    let message = ShortMessage {
        source: Address { ton: 1, npi: 1, digits: number.as_bytes() },
        destination: Address { ton: 5, npi: 0, digits: b"Shop" },
        esm_class,
        text: text.as_bytes(),
        ..ShortMessage::default()
    };
    pdu::put(out, PduHeader::request(id::DELIVER_SM, sequence), |out| message.encode(out));
}
