//! A client of a server that speaks HTTPS, over HTTP/1.1 or HTTP/2, that trusts one certificate.

use crate::server::Server;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertifiedKey, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Speaks HTTPS with the files `cert.pem` and `key.pem` in its folder.
pub(crate) const CONFIG: &str = "[server]\ntls_cert = 'cert.pem'\ntls_key = 'key.pem'\n";
pub(crate) const H2: &[u8] = b"h2";
pub(crate) const HTTP_1_1: &[u8] = b"http/1.1";

/// A certificate for 127.0.0.1, and its key, both in PEM.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) cert: String,
    pub(crate) key: String,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let CertifiedKey::<KeyPair> { cert, signing_key } = made;
        Self { cert: cert.pem(), key: signing_key.serialize_pem() }
    }

    /// Becomes what the server is told to show, as a renewal would put it there.
    pub(crate) fn put(&self, server: &Server) {
        for (name, text) in [("cert.pem", &self.cert), ("key.pem", &self.key)] {
            let path = server.home.path().join(name);
            std::fs::write(path.with_extension("new"), text).unwrap();
            std::fs::rename(path.with_extension("new"), path).unwrap();
        }
    }

    fn connector(&self, protocol: &[u8]) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.cert.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        TlsConnector::from(Arc::new(config))
    }
}

/// The way to send requests, by protocol.
#[derive(Debug)]
enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// A connection, kept from one request to the next.
pub(crate) struct Client {
    runtime: Runtime,
    sender: Sender,
    /// Drives the connection.
    _connection: JoinSet<()>,
}

impl Client {
    /// Connects, if the server shows the certificate of `trusted`.
    pub(crate) fn open(address: SocketAddr, trusted: &Pair, protocol: &[u8]) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = { runtime }.worker_threads(1).enable_all().build().unwrap();
        let mut connection = JoinSet::new();
        let sender = runtime.block_on(async {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let name = ServerName::try_from("127.0.0.1").unwrap();
            let stream = trusted.connector(protocol).connect(name, stream).await?;
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
            Ok::<_, io::Error>(handshake(stream, protocol == H2, &mut connection).await)
        })?;
        Ok(Self { runtime, sender, _connection: connection })
    }

    pub(crate) fn ask(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Bytes>> {
        let sender = &mut self.sender;
        self.runtime.block_on(async {
            let response = match sender {
                Sender::Http1(sender) => {
                    // The task that drives the connection may not have seen the end of the last answer yet.
                    sender.ready().await?;
                    sender.send_request(request).await?
                }
                Sender::Http2(sender) => sender.send_request(request).await?,
            };
            whole(response).await
        })
    }

    /// Asks many things at once, over HTTP/2; what was not sent because the connection ended is left out.
    pub(crate) fn ask_all(
        &mut self,
        requests: impl IntoIterator<Item = Request<Full<Bytes>>>,
    ) -> Vec<hyper::Result<Response<Bytes>>> {
        let Sender::Http2(sender) = &self.sender else { panic!("one request at a time") };
        let mut sender = sender.clone();
        self.runtime.block_on(async {
            let mut under_way = JoinSet::new();
            for request in requests {
                if sender.ready().await.is_err() {
                    break;
                }
                let asked = sender.send_request(request);
                under_way.spawn(async { whole(asked.await?).await });
            }
            under_way.join_all().await
        })
    }

    /// Takes requests back as soon as they are sent, over HTTP/2.
    pub(crate) fn take_back(&mut self, request: &Request<Full<Bytes>>, times: usize) {
        let Sender::Http2(sender) = &mut self.sender else { panic!("needs streams") };
        self.runtime.block_on(async {
            for _ in 0..times {
                if sender.ready().await.is_err() {
                    return;
                }
                let asked = sender.send_request(request.clone());
                let _ = tokio::time::timeout(std::time::Duration::ZERO, asked).await;
            }
        });
    }

    pub(crate) fn is_closed(&self) -> bool {
        match &self.sender {
            Sender::Http1(sender) => sender.is_closed(),
            Sender::Http2(sender) => sender.is_closed(),
        }
    }
}

async fn handshake(
    stream: TlsStream<TcpStream>,
    http2: bool,
    connection: &mut JoinSet<()>,
) -> Sender {
    let io = TokioIo::new(stream);
    if http2 {
        let (sender, driven) =
            http2::Builder::new(TokioExecutor::new()).handshake(io).await.unwrap();
        connection.spawn(async { drop(driven.await) });
        Sender::Http2(sender)
    } else {
        let (sender, driven) = http1::handshake(io).await.unwrap();
        connection.spawn(async { drop(driven.await) });
        Sender::Http1(sender)
    }
}

async fn whole(response: Response<hyper::body::Incoming>) -> hyper::Result<Response<Bytes>> {
    let (head, body) = response.into_parts();
    Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
}

pub(crate) fn get(path: &str) -> Request<Full<Bytes>> {
    let request = Request::get(format!("https://127.0.0.1{path}")).header("host", "127.0.0.1");
    request.body(Full::default()).unwrap()
}

/// A message to be sent.
pub(crate) fn send_sms(key: &str, body: &Value) -> Request<Full<Bytes>> {
    let request = Request::post("https://127.0.0.1/v1/send/sms").header("host", "127.0.0.1");
    let request = request.header("authorization", format!("Bearer {key}"));
    let request = request.header("content-type", "application/json");
    request.body(Full::from(body.to_string())).unwrap()
}

pub(crate) fn json(response: &Response<Bytes>) -> Value {
    serde_json::from_slice(response.body()).unwrap()
}
