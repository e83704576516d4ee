//! The HTTP client for webhook endpoints, with SSRF protection.
//!
//! The host is resolved once, every address is checked against the egress policy, and the checked
//! address is the one dialled, so DNS rebinding has no effect. Redirects are not followed.

use crate::http::connection::{self, HttpConnection};
use heliograph_domain::delivery_error::{DeliveryError, DeliveryErrorKind};
use heliograph_domain::egress_policy::{EgressDenied, EgressPolicy};
use heliograph_domain::id::AccountId;
use heliograph_domain::webhook_url::WebhookUrl;
use heliograph_service::kernel::name_resolution::NameResolution;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::io::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The time limit for connecting, including the TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest response head, in bytes.
const MAX_HEAD: usize = 64 << 10;
/// The number of addresses of one host to try.
const MAX_ADDRESSES: usize = 4;

/// Opens connections to endpoints; cheap to clone.
#[derive(Clone)]
pub(crate) struct HttpClient {
    names: NameResolution,
    tls: TlsConnector,
}

impl HttpClient {
    /// Creates a client that trusts the certificate authorities of the operating system and of
    /// Mozilla, and these.
    pub(crate) fn new(names: NameResolution, authorities: &[CertificateDer<'static>]) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities.iter().cloned());
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        #[expect(clippy::expect_used, reason = "ring speaks the default versions")]
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring speaks TLS 1.2 and 1.3");
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self { names, tls: TlsConnector::from(Arc::new(config)) }
    }

    /// Opens a connection of an account to an address that the policy allows.
    pub(crate) async fn dial(
        &self,
        account: AccountId,
        target: &WebhookUrl,
        egress_policy: &EgressPolicy,
    ) -> Result<HttpConnection, DeliveryError> {
        match tokio::time::timeout(CONNECT_TIMEOUT, self.connect(account, target, egress_policy))
            .await
        {
            Ok(result) => result,
            Err(_) => {
                let limit = format!("{} s", CONNECT_TIMEOUT.as_secs());
                Err(DeliveryError::new(DeliveryErrorKind::ConnectTimeout, limit))
            }
        }
    }

    async fn connect(
        &self,
        account: AccountId,
        target: &WebhookUrl,
        egress_policy: &EgressPolicy,
    ) -> Result<HttpConnection, DeliveryError> {
        let tcp = self.reach(account, target, egress_policy).await?;
        let _ = tcp.set_nodelay(true);
        if !target.is_https() {
            return http1(tcp).await;
        }
        let name = ServerName::try_from(target.host());
        let name =
            name.map_err(|e| DeliveryError::new(DeliveryErrorKind::TlsFailed, e.to_string()))?;
        let tls = self.tls.connect(name, tcp).await.map_err(|e| tls_error(&e))?;
        match tls.get_ref().1.alpn_protocol() {
            Some(b"h2") => http2(tls).await,
            _ => http1(tls).await,
        }
    }

    /// Connects to the very address that was checked; the host is not resolved a second time.
    async fn reach(
        &self,
        account: AccountId,
        target: &WebhookUrl,
        egress_policy: &EgressPolicy,
    ) -> Result<TcpStream, DeliveryError> {
        egress_policy.check_port(target.port()).map_err(denied)?;
        let addresses = addresses(&self.names, account, target).await?;
        let mut why = DeliveryError::new(DeliveryErrorKind::NoAddress, target.host());
        for address in addresses.into_iter().take(MAX_ADDRESSES) {
            if let Err(refused) = egress_policy.check(address, target.is_https()) {
                why = denied(refused);
                continue;
            }
            match TcpStream::connect(SocketAddr::new(address, target.port())).await {
                Ok(stream) => return Ok(stream),
                Err(e) => why = connect_error(&e, &format!("{address} port {}", target.port())),
            }
        }
        Err(why)
    }
}

/// Returns the error of an address that the egress policy denies.
fn denied(why: EgressDenied) -> DeliveryError {
    match why {
        EgressDenied::PrivateAddress(address) => {
            DeliveryError::new(DeliveryErrorKind::PrivateAddress, address.to_string())
        }
        EgressDenied::Plaintext(address) => {
            DeliveryError::new(DeliveryErrorKind::PlainHttp, address.to_string())
        }
        EgressDenied::Port(port) => {
            DeliveryError::new(DeliveryErrorKind::PortDenied, port.to_string())
        }
    }
}

/// Returns the error of a failed TCP connection.
fn connect_error(e: &Error, place: &str) -> DeliveryError {
    match e.kind() {
        ErrorKind::ConnectionRefused => {
            DeliveryError::new(DeliveryErrorKind::ConnectionRefused, place)
        }
        _ => DeliveryError::new(DeliveryErrorKind::ConnectFailed, format!("{place}: {e}")),
    }
}

/// Returns the error of a failed TLS handshake.
fn tls_error(e: &Error) -> DeliveryError {
    use rustls::{CertificateError, Error as TlsError, InvalidMessage};
    match e.get_ref().and_then(|e| e.downcast_ref::<TlsError>()) {
        Some(TlsError::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            DeliveryError::new(DeliveryErrorKind::NotTls, "")
        }
        Some(TlsError::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::Other(_),
        )) => DeliveryError::new(DeliveryErrorKind::UntrustedCertificate, ""),
        Some(TlsError::InvalidCertificate(why)) => {
            DeliveryError::new(DeliveryErrorKind::InvalidCertificate, why.to_string())
        }
        _ => DeliveryError::new(DeliveryErrorKind::TlsFailed, e.to_string()),
    }
}

/// Returns the addresses of a host, which may be a literal address or a name to resolve.
async fn addresses(
    names: &NameResolution,
    account: AccountId,
    target: &WebhookUrl,
) -> Result<Vec<IpAddr>, DeliveryError> {
    if let Some(address) = target.address() {
        return Ok(vec![address]);
    }
    let host = target.host();
    let found = names.resolve(account, host.clone()).await;
    found.map_err(|e| DeliveryError::new(DeliveryErrorKind::HostNotFound, format!("{host}: {e}")))
}

async fn http1<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    io: S,
) -> Result<HttpConnection, DeliveryError> {
    let mut builder = hyper::client::conn::http1::Builder::new();
    builder.max_buf_size(MAX_HEAD);
    let io: Box<dyn crate::http::connection::Io> = Box::new(io);
    let result = builder.handshake(TokioIo::new(io)).await;
    let (sender, connection) = result.map_err(connection::error)?;
    Ok(HttpConnection::http1(sender, connection))
}

async fn http2<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    io: S,
) -> Result<HttpConnection, DeliveryError> {
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    builder.max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX));
    let io: Box<dyn crate::http::connection::Io> = Box::new(io);
    let result = builder.handshake(TokioIo::new(io)).await;
    let (sender, connection) = result.map_err(connection::error)?;
    Ok(HttpConnection::http2(sender, connection))
}
