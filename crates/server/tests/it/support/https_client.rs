//! An HTTPS client for HTTP/1.1 and HTTP/2 that trusts one certificate.

use crate::support::server::Server;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Bytes;
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertifiedKey, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A server configuration with HTTPS, with the files `cert.pem` and `key.pem`.
pub(crate) const CONFIG: &str = "[server]\ntls_cert = 'cert.pem'\ntls_key = 'key.pem'\n";
pub(crate) const H2: &[u8] = b"h2";
pub(crate) const HTTP_1_1: &[u8] = b"http/1.1";

pub(crate) const HSTS: Option<&str> = Some("max-age=31536000; includeSubDomains");

/// A certificate for 127.0.0.1 and its private key, in PEM.
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

    /// Replaces the files of a server atomically, like a renewal.
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

/// Starts a server with HTTPS.
pub(crate) fn start(pair: &Pair) -> Server {
    let mut server = Server::new(CONFIG);
    pair.put(&server);
    server.launch();
    server.wait_until_ready();
    server
}

/// The sending half, by protocol.
type ClientBody = BoxBody<Bytes, Infallible>;

#[derive(Debug)]
enum Sender {
    Http1(http1::SendRequest<ClientBody>),
    Http2(http2::SendRequest<ClientBody>),
}

/// A persistent HTTPS connection.
pub(crate) struct HttpsClient {
    runtime: Runtime,
    sender: Sender,
    /// The task that drives the connection.
    _connection: JoinSet<()>,
    /// Requests whose body never arrives.
    stalled: JoinSet<()>,
    /// Responses that are not read.
    unread: Vec<Response<hyper::body::Incoming>>,
}

impl HttpsClient {
    /// Connects; fails if the server has another certificate than `trusted`.
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
        Ok(Self {
            runtime,
            sender,
            _connection: connection,
            stalled: JoinSet::new(),
            unread: Vec::new(),
        })
    }

    pub(crate) fn ask(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Bytes>> {
        let (sender, request) = (&mut self.sender, request.map(BodyExt::boxed));
        self.runtime.block_on(async {
            let response = match sender {
                Sender::Http1(sender) => {
                    // The previous response may not be finished in the task that drives the
                    // connection.
                    sender.ready().await?;
                    sender.send_request(request).await?
                }
                Sender::Http2(sender) => sender.send_request(request).await?,
            };
            whole(response).await
        })
    }

    /// Sends concurrent requests over HTTP/2, until the connection is closed.
    pub(crate) fn ask_all(
        &mut self,
        requests: impl IntoIterator<Item = Request<Full<Bytes>>>,
    ) -> Vec<hyper::Result<Response<Bytes>>> {
        let Sender::Http2(sender) = &self.sender else {
            panic!("HTTP/1.1 has one request at a time")
        };
        let mut sender = sender.clone();
        self.runtime.block_on(async {
            let mut in_progress = JoinSet::new();
            for request in requests {
                if sender.ready().await.is_err() {
                    break;
                }
                let asked = sender.send_request(request.map(BodyExt::boxed));
                in_progress.spawn(async { whole(asked.await?).await });
            }
            in_progress.join_all().await
        })
    }

    /// Sends HTTP/2 requests, and cancels each immediately.
    pub(crate) fn send_and_cancel(&mut self, request: &Request<Full<Bytes>>, times: usize) {
        let Sender::Http2(sender) = &mut self.sender else {
            panic!("only HTTP/2 can cancel a request")
        };
        self.runtime.block_on(async {
            for _ in 0..times {
                if sender.ready().await.is_err() {
                    return;
                }
                let asked = sender.send_request(request.clone().map(BodyExt::boxed));
                let _ = tokio::time::timeout(std::time::Duration::ZERO, asked).await;
            }
        });
    }

    /// Sends the heads of POST requests whose body never arrives; with HTTP/1.1, of one.
    pub(crate) fn stall(&mut self, path: &str, key: &str, times: usize) {
        let request = || {
            let request = Request::post(format!("https://127.0.0.1{path}"));
            let request = request.header("authorization", format!("Bearer {key}"));
            let request = request.header("content-type", "application/json");
            let never = StreamBody::new(futures_util::stream::pending());
            request.header("host", "127.0.0.1").body(BodyExt::boxed(never)).unwrap()
        };
        let (sender, stalled) = (&mut self.sender, &mut self.stalled);
        self.runtime.block_on(async {
            match sender {
                Sender::Http1(sender) => {
                    let asked = sender.send_request(request());
                    stalled.spawn(async { drop(asked.await) });
                }
                Sender::Http2(sender) => {
                    for _ in 0..times {
                        sender.ready().await.unwrap();
                        let asked = sender.send_request(request());
                        stalled.spawn(async { drop(asked.await) });
                    }
                }
            }
        });
    }

    /// Sends requests, and reads only the heads of the responses; with HTTP/1.1, of one.
    pub(crate) fn leave_unread(&mut self, path: &str, key: &str, times: usize) {
        let request = || {
            let request = Request::get(format!("https://127.0.0.1{path}"));
            let request = request.header("authorization", format!("Bearer {key}"));
            let request = request.header("host", "127.0.0.1");
            request.body(BodyExt::boxed(Full::default())).unwrap()
        };
        let (sender, unread) = (&mut self.sender, &mut self.unread);
        self.runtime.block_on(async {
            match sender {
                Sender::Http1(sender) => unread.push(sender.send_request(request()).await.unwrap()),
                Sender::Http2(sender) => {
                    for _ in 0..times {
                        sender.ready().await.unwrap();
                        unread.push(sender.send_request(request()).await.unwrap());
                    }
                }
            }
        });
    }

    /// Returns the number of stalled requests that have no response.
    pub(crate) fn stalled(&mut self) -> usize {
        while self.stalled.try_join_next().is_some() {}
        self.stalled.len()
    }

    pub(crate) fn is_closed(&self) -> bool {
        match &self.sender {
            Sender::Http1(sender) => sender.is_closed(),
            Sender::Http2(sender) => sender.is_closed(),
        }
    }
}

/// A connection on which only the first bytes were sent.
pub(crate) struct Silent {
    _runtime: Runtime,
    _stream: TlsStream<TcpStream>,
}

impl Silent {
    /// Connects and sends these bytes.
    pub(crate) fn open(address: SocketAddr, trusted: &Pair, protocol: &[u8], bytes: &[u8]) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let stream = runtime.block_on(async {
            let stream = TcpStream::connect(address).await.unwrap();
            let name = ServerName::try_from("127.0.0.1").unwrap();
            let mut stream = trusted.connector(protocol).connect(name, stream).await.unwrap();
            stream.write_all(bytes).await.unwrap();
            stream.flush().await.unwrap();
            stream
        });
        Self { _runtime: runtime, _stream: stream }
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

/// A request to send a message.
pub(crate) fn send_sms(key: &str, body: &Value) -> Request<Full<Bytes>> {
    let request = Request::post("https://127.0.0.1/v1/send/sms").header("host", "127.0.0.1");
    let request = request.header("authorization", format!("Bearer {key}"));
    let request = request.header("content-type", "application/json");
    request.body(Full::from(body.to_string())).unwrap()
}

pub(crate) fn json(response: &Response<Bytes>) -> Value {
    serde_json::from_slice(response.body()).unwrap()
}
