//! The way to webhook endpoints: dials only addresses that were checked, keeps connections, follows nothing.

use crate::line::Line;
use heliograph_domain::target::{Reach, Resolver, Target};
use heliograph_domain::trouble::Trouble;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::io::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How long a connection may take to come about, TLS included.
const CONNECT: Duration = Duration::from_secs(5);
/// The largest head of an answer.
const MAX_HEAD: usize = 64 << 10;
/// Addresses of one host that are tried.
const MOST_ADDRESSES: usize = 4;

/// Dials endpoints; cheap to clone.
#[derive(Clone)]
pub(crate) struct HttpClient {
    resolver: Arc<dyn Resolver>,
    tls: TlsConnector,
}

impl HttpClient {
    /// A client that trusts the machine's certificate authorities and the web's.
    pub(crate) fn new(resolver: Arc<dyn Resolver>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        #[expect(clippy::expect_used, reason = "ring speaks the default versions")]
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring speaks TLS 1.2 and 1.3");
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self { resolver, tls: TlsConnector::from(Arc::new(config)) }
    }

    /// A new connection to a checked address of the target; why not, in words.
    pub(crate) async fn dial(&self, target: &Target, reach: &Reach) -> Result<Line, String> {
        match tokio::time::timeout(CONNECT, self.connect(target, reach)).await {
            Ok(done) => done,
            Err(_) => {
                Err(format!("{} within {} s", Trouble::NoConnection.word(), CONNECT.as_secs()))
            }
        }
    }

    async fn connect(&self, target: &Target, reach: &Reach) -> Result<Line, String> {
        let tcp = self.reach(target, reach).await?;
        let _ = tcp.set_nodelay(true);
        if !target.is_https() {
            return http1(tcp).await;
        }
        let name = ServerName::try_from(target.host()).map_err(|e| e.to_string())?;
        let tls = self.tls.connect(name, tcp).await.map_err(|e| words(&e))?;
        match tls.get_ref().1.alpn_protocol() {
            Some(b"h2") => http2(tls).await,
            _ => http1(tls).await,
        }
    }

    /// The address that was checked is the one that is dialled: nothing is resolved twice.
    async fn reach(&self, target: &Target, reach: &Reach) -> Result<TcpStream, String> {
        let addresses = addresses(&*self.resolver, target).await?;
        let mut why = String::new();
        for address in addresses.into_iter().take(MOST_ADDRESSES) {
            if let Err(refused) = reach.check(address, target.is_https()) {
                why = Trouble::NotAllowed.says(&refused.to_string());
                continue;
            }
            match TcpStream::connect(SocketAddr::new(address, target.port())).await {
                Ok(stream) => return Ok(stream),
                Err(e) => why = unreached(&e, &format!("{address} port {}", target.port())),
            }
        }
        Err(why)
    }
}

/// Why nobody was reached there.
fn unreached(e: &Error, place: &str) -> String {
    match e.kind() {
        ErrorKind::ConnectionRefused => Trouble::Refused.says(place),
        _ => Trouble::NoConnection.says(&format!("{place}: {e}")),
    }
}

/// Why TLS did not come about, and what to do where that is known.
fn words(e: &Error) -> String {
    use rustls::{CertificateError, Error as TlsError, InvalidMessage};
    let inner = e.get_ref().and_then(|e| e.downcast_ref::<TlsError>());
    let why = match inner {
        Some(TlsError::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            "what answers there does not speak TLS".to_owned()
        }
        Some(TlsError::InvalidCertificate(why)) => match why {
            CertificateError::UnknownIssuer | CertificateError::Other(_) => {
                "the certificate was not issued by an authority that is publicly trusted (self-signed?)"
                    .to_owned()
            }
            why => format!("the certificate can't be accepted: {why}"),
        },
        _ => e.to_string(),
    };
    Trouble::Tls.says(&why)
}

/// The addresses of a target's host, written or resolved.
async fn addresses(resolver: &dyn Resolver, target: &Target) -> Result<Vec<IpAddr>, String> {
    if let Some(address) = target.address() {
        return Ok(vec![address]);
    }
    let host = target.host();
    let found = resolver.resolve(host.clone()).await;
    let found = found.map_err(|e| Trouble::NoName.says(&format!("{host}: {e}")))?;
    match found.is_empty() {
        true => Err(Trouble::NoName.says(&format!("{host} has no address"))),
        false => Ok(found),
    }
}

async fn http1<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(io: S) -> Result<Line, String> {
    let mut builder = hyper::client::conn::http1::Builder::new();
    builder.max_buf_size(MAX_HEAD);
    let io: Box<dyn crate::line::Io> = Box::new(io);
    let made = builder.handshake(TokioIo::new(io)).await;
    let (sender, connection) = made.map_err(|e| e.to_string())?;
    Ok(Line::http1(sender, connection))
}

async fn http2<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(io: S) -> Result<Line, String> {
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    builder.max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX));
    let io: Box<dyn crate::line::Io> = Box::new(io);
    let made = builder.handshake(TokioIo::new(io)).await;
    let (sender, connection) = made.map_err(|e| e.to_string())?;
    Ok(Line::http2(sender, connection))
}
