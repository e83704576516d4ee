//! Webhooks over TLS: HTTP/2 where the endpoint speaks it, connections that are kept, certificates that count.

use crate::database::{Engine, each_engine};
use crate::patience::eventually;
use crate::send_sms::hello;
use crate::server::Server;
use crate::webhooks::add;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::CertifiedKey;
use rustls::pki_types::PrivateKeyDer;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

each_engine!(tls: one_connection_carries_many_over_http2 connections_are_kept_over_http1
    a_stranger_is_not_told);

/// What an endpoint has seen.
#[derive(Default)]
struct Seen {
    connections: usize,
    versions: BTreeSet<String>,
    ids: BTreeSet<String>,
}

/// An endpoint that speaks TLS.
struct Endpoint {
    address: SocketAddr,
    certificate: String,
    seen: Arc<Mutex<Seen>>,
}

impl Endpoint {
    /// Speaks this protocol, as ALPN names it.
    fn start(protocol: &'static [u8]) -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut config = config.with_single_cert(vec![cert.der().clone()], key).unwrap();
        config.alpn_protocols = vec![protocol.to_vec()];
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let theirs = seen.clone();
        std::thread::spawn(move || serve(listener, TlsAcceptor::from(Arc::new(config)), &theirs));
        Self { address, certificate: cert.pem(), seen }
    }

    /// A server that trusts it, if it does, and tells it of everything.
    fn told_by(&self, engine: Engine, trusted: bool) -> (Server, String) {
        let config = "[webhooks]\nallow_private = ['127.0.0.1/32']\n";
        let mut server = Server::new(engine, config);
        std::fs::write(server.home.path().join("ca.pem"), &self.certificate).unwrap();
        server.launch_with_variable("SSL_CERT_FILE", if trusted { "ca.pem" } else { "none.pem" });
        server.await_ready();
        let (id, _) = add(&server, &format!("https://{}/", self.address), &[]);
        (server, id)
    }

    fn seen<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.seen.lock().unwrap())
    }
}

fn serve(listener: std::net::TcpListener, tls: TlsAcceptor, seen: &Arc<Mutex<Seen>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    listener.set_nonblocking(true).unwrap();
    runtime.block_on(async {
        let listener = TcpListener::from_std(listener).unwrap();
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let (tls, seen) = (tls.clone(), seen.clone());
            connections.spawn(async move {
                let Ok(stream) = tls.accept(stream).await else { return };
                seen.lock().unwrap().connections += 1;
                let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                let io = TokioIo::new(stream);
                let answer = service_fn(move |request| answer(seen.clone(), request));
                if http2 {
                    let http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    drop(http.serve_connection(io, answer).await);
                } else {
                    let http = hyper::server::conn::http1::Builder::new();
                    drop(http.serve_connection(io, answer).await);
                }
            });
        }
    });
}

async fn answer(
    seen: Arc<Mutex<Seen>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let whole = body.collect().await.is_ok();
    let id = head.headers.get("webhook-id").and_then(|v| v.to_str().ok()).unwrap_or_default();
    let mut seen = seen.lock().unwrap();
    seen.versions.insert(format!("{:?}", head.version));
    assert!(whole && (head.version == Version::HTTP_2 || head.headers.contains_key("host")));
    seen.ids.insert(id.to_owned());
    Ok(Response::new(Full::from("thanks")))
}

fn send(server: &Server, endpoint: &Endpoint, count: usize) {
    let key = server.key();
    for n in 0..count {
        server.accepted(&key, &hello(&format!("+4477009{:05}", 100 + n)));
    }
    eventually("all are told", || endpoint.seen(|s| (s.ids.len() == count).then_some(())));
}

fn one_connection_carries_many_over_http2(engine: Engine) {
    let endpoint = Endpoint::start(b"h2");
    let (server, _) = endpoint.told_by(engine, true);
    send(&server, &endpoint, 1);
    let key = server.key();
    for n in 0..100 {
        server.accepted(&key, &hello(&format!("+4477009{:05}", 200 + n)));
    }
    eventually("all are told", || endpoint.seen(|s| (s.ids.len() == 101).then_some(())));
    endpoint.seen(|s| {
        assert_eq!(s.versions, BTreeSet::from(["HTTP/2.0".to_owned()]));
        assert_eq!(s.connections, 1);
    });
}

fn connections_are_kept_over_http1(engine: Engine) {
    let endpoint = Endpoint::start(b"http/1.1");
    let (server, _) = endpoint.told_by(engine, true);
    send(&server, &endpoint, 150);
    endpoint.seen(|s| {
        assert_eq!(s.versions, BTreeSet::from(["HTTP/1.1".to_owned()]));
        assert!(s.connections <= 64, "{}", s.connections);
    });
}

fn a_stranger_is_not_told(engine: Engine) {
    let endpoint = Endpoint::start(b"h2");
    let (server, id) = endpoint.told_by(engine, false);
    let output = server.tool(&["webhook", "test", &id]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("TLS: the certificate was not issued by"), "{said}");
    assert_eq!(endpoint.seen(|s| s.ids.len()), 0);
}
