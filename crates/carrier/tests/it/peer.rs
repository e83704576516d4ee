//! The other end of a link, which does exactly what the test tells it: as an SMSC or as a client.

use bytes::{Buf, BufMut, BytesMut};
use heliograph_carrier::smpp::body::{Address, Bind, ShortMessage, put_tlv};
use heliograph_carrier::smpp::command::{esm, id};
use heliograph_carrier::smpp::pdu::{self, Head};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);

/// Where a carrier can find a scripted SMSC.
pub(crate) struct Door(TcpListener);

impl Door {
    pub(crate) async fn open() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    /// Takes the next connection, and its bind request.
    pub(crate) async fn knock(&self) -> (Peer, Head) {
        let taken = timeout(PATIENCE, self.0.accept()).await;
        let (stream, _) = taken.expect("nobody connects").unwrap();
        let mut peer = Peer::new(stream);
        let head = peer.expect(id::BIND_TRANSCEIVER).await.0;
        (peer, head)
    }

    /// Takes the next connection and binds it.
    pub(crate) async fn bind(&self) -> Peer {
        let (mut peer, head) = self.knock().await;
        peer.say(|out| pdu::put_id(out, head.response(0), b"peer")).await;
        peer
    }
}

/// An open connection.
pub(crate) struct Peer {
    stream: TcpStream,
    inbound: BytesMut,
}

impl Peer {
    fn new(stream: TcpStream) -> Self {
        Self { stream, inbound: BytesMut::new() }
    }

    /// As a client that is not bound.
    pub(crate) async fn connect(port: u16) -> Self {
        Self::new(TcpStream::connect(("127.0.0.1", port)).await.unwrap())
    }

    /// As a client with this kind of bind.
    pub(crate) async fn client(port: u16, command: u32, system_id: &str) -> Self {
        let mut peer = Self::connect(port).await;
        let bind = Bind {
            system_id: system_id.as_bytes(),
            password: b"any",
            system_type: b"",
            interface_version: 0x34,
        };
        peer.say(|out| pdu::put(out, Head::request(command, 1), |out| bind.encode(out))).await;
        let (head, _) = peer.next().await;
        assert_eq!(head, Head::request(command, 1).response(0));
        peer
    }

    /// Writes what `write` puts together.
    pub(crate) async fn say(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let mut out = BytesMut::new();
        write(&mut out);
        self.stream.write_all(&out).await.unwrap();
    }

    /// Writes a PDU without a body.
    pub(crate) async fn bare(&mut self, head: Head) {
        self.say(|out| pdu::put_bare(out, head)).await;
    }

    /// Answers a submit_sm.
    pub(crate) async fn answer(&mut self, head: Head, status: u32, id: &str) {
        self.say(|out| pdu::put_id(out, head.response(status), id.as_bytes())).await;
    }

    /// The next PDU; `None` when the other side has closed.
    pub(crate) async fn read(&mut self) -> Option<(Head, Vec<u8>)> {
        loop {
            let mut rest = self.inbound.as_ref();
            if let Some(pdu) = pdu::take(&mut rest).unwrap() {
                let read = (pdu.head, pdu.body.to_vec());
                let used = self.inbound.len() - rest.len();
                self.inbound.advance(used);
                return Some(read);
            }
            let more = timeout(PATIENCE, self.stream.read_buf(&mut self.inbound)).await;
            if more.expect("nothing is said").unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    /// The next PDU.
    pub(crate) async fn next(&mut self) -> (Head, Vec<u8>) {
        self.read().await.expect("the other side has closed")
    }

    /// The next PDU, which must be this command.
    pub(crate) async fn expect(&mut self, command: u32) -> (Head, Vec<u8>) {
        let (head, body) = self.next().await;
        assert_eq!(head.command, command, "{head:x?}");
        (head, body)
    }

    /// Asks twice whether the other side is there, and sees that it says nothing else: between the
    /// questions it has done all that it could.
    pub(crate) async fn expect_silence(&mut self) {
        for sequence in [0x00AB_CDEF, 0x00FE_DCBA] {
            let head = Head::request(id::ENQUIRE_LINK, sequence);
            self.bare(head).await;
            assert_eq!(self.next().await.0, head.response(0));
        }
    }

    /// Sends a deliver_sm from `number`.
    pub(crate) async fn deliver(&mut self, sequence: u32, number: &str, esm_class: u8, text: &str) {
        self.say(|out| put_deliver(out, sequence, number, esm_class, text)).await;
    }

    /// Sends a receipt that says that `id` reached `number`.
    pub(crate) async fn receipt(&mut self, sequence: u32, number: &str, id: &str) {
        let text = format!("id:{id} stat:DELIVRD err:000");
        self.deliver(sequence, number, esm::RECEIPT, &text).await;
    }

    /// Sends a submit_sm to `number` that asks for a receipt.
    pub(crate) async fn submit(&mut self, sequence: u32, number: &str) {
        let message = ShortMessage {
            source: Address { ton: 5, npi: 0, digits: b"Shop" },
            destination: Address { ton: 1, npi: 1, digits: number.as_bytes() },
            registered_delivery: 1,
            text: b"Hello from the peer",
            ..ShortMessage::default()
        };
        let head = Head::request(id::SUBMIT_SM, sequence);
        self.say(|out| pdu::put(out, head, |out| message.encode(out))).await;
    }

    /// Sends this deliver_sm, followed by these optional parameters.
    pub(crate) async fn incoming(
        &mut self,
        sequence: u32,
        message: ShortMessage<'_>,
        optional: &[(u16, &[u8])],
    ) {
        let head = Head::request(id::DELIVER_SM, sequence);
        self.say(|out| {
            pdu::put(out, head, |out| {
                message.encode(out);
                for (tag, value) in optional {
                    put_tlv(out, *tag, value);
                }
            });
        })
        .await;
    }

    /// Writes these bytes, whatever they are.
    pub(crate) async fn raw(&mut self, bytes: &[u8]) {
        self.say(|out| out.put_slice(bytes)).await;
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
    pdu::put(out, Head::request(id::DELIVER_SM, sequence), |out| message.encode(out));
}
