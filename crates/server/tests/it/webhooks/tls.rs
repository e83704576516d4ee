//! Webhooks over TLS: HTTP/2, connection reuse and certificate verification.

use crate::support::api::hello;
use crate::support::server::Server;
use crate::support::wait::eventually;
use crate::support::webhooks::add;
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

/// The connections and requests that an endpoint has received.
#[derive(Default)]
struct Seen {
    connections: usize,
    versions: BTreeSet<String>,
    ids: BTreeSet<String>,
}

/// A webhook endpoint with TLS.
struct TlsEndpoint {
    address: SocketAddr,
    certificate: String,
    seen: Arc<Mutex<Seen>>,
}

impl TlsEndpoint {
    /// Starts an endpoint with this protocol (ALPN).
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

    /// Starts a server that sends all events to this endpoint, and trusts its certificate if
    /// `trusted`.
    fn start_server(&self, trusted: bool) -> (Server, String) {
        self.start_server_with(trusted, "")
    }

    /// Starts a server with these settings of webhooks.
    fn start_server_with(&self, trusted: bool, settings: &str) -> (Server, String) {
        let config = format!("[webhooks]\nallow_private = ['127.0.0.1/32']\n{settings}");
        let mut server = Server::new(&config);
        std::fs::write(server.home.path().join("ca.pem"), &self.certificate).unwrap();
        server.launch_with_variable("SSL_CERT_FILE", if trusted { "ca.pem" } else { "none.pem" });
        server.wait_until_ready();
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
                let service = service_fn(move |request| respond(seen.clone(), request));
                if http2 {
                    let http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    drop(http.serve_connection(io, service).await);
                } else {
                    let http = hyper::server::conn::http1::Builder::new();
                    drop(http.serve_connection(io, service).await);
                }
            });
        }
    });
}

async fn respond(
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

fn send(server: &Server, endpoint: &TlsEndpoint, count: usize) {
    let key = server.key();
    for n in 0..count {
        server.accepted(&key, &hello(&format!("+4477009{:05}", 100 + n)));
    }
    eventually("all events are delivered", || {
        endpoint.seen(|s| (s.ids.len() == count).then_some(()))
    });
}

#[test]
fn http2_uses_one_connection() {
    let endpoint = TlsEndpoint::start(b"h2");
    let (server, _) = endpoint.start_server(true);
    // Also those that are due before the first response.
    send(&server, &endpoint, 100);
    endpoint.seen(|s| {
        assert_eq!(s.versions, BTreeSet::from(["HTTP/2.0".to_owned()]));
        assert_eq!(s.connections, 1);
    });
}

#[test]
fn http1_connections_are_reused() {
    let endpoint = TlsEndpoint::start(b"http/1.1");
    let (server, _) = endpoint.start_server(true);
    send(&server, &endpoint, 150);
    endpoint.seen(|s| {
        assert_eq!(s.versions, BTreeSet::from(["HTTP/1.1".to_owned()]));
        assert!(s.connections <= 64, "{}", s.connections);
    });
}

#[test]
fn an_untrusted_certificate_gets_no_events() {
    let endpoint = TlsEndpoint::start(b"h2");
    let (server, id) = endpoint.start_server(false);
    let output = server.run(&["webhook", "test", &id]);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout.contains("TLS: the certificate is not issued by"), "{stdout}");
    assert_eq!(endpoint.seen(|s| s.ids.len()), 0);
}

#[test]
fn an_authority_in_the_configured_file_is_trusted() {
    let endpoint = TlsEndpoint::start(b"http/1.1");
    let (server, _) = endpoint.start_server_with(false, "ca_file = 'ca.pem'\n");
    send(&server, &endpoint, 1);
    let mut server = Server::new("[webhooks]\nca_file = 'none.pem'\n");
    server.launch();
    assert_eq!(server.process().wait().code(), Some(1));
    let why = server.process().stderr.text();
    assert!(why.contains("webhooks.ca_file: failed to read none.pem"), "{why}");
}
