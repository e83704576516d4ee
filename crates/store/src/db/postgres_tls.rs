//! TLS of connections to PostgreSQL, with the parameters `sslmode` and `sslrootcert` of libpq.

use crate::db::postgres_error::words;
use crate::error::{StoreError, StoreResult};
use futures_util::future::BoxFuture;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The address of a server, and how connections to it are protected.
#[derive(Clone)]
pub(crate) struct PostgresServer {
    pub(crate) config: tokio_postgres::Config,
    pub(crate) tls: RustlsConnect,
}

/// The value of `sslmode`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Protection {
    /// No TLS.
    Disable,
    /// TLS if the server supports it, with any certificate.
    Prefer,
    /// TLS, with any certificate; with `sslrootcert` the same as `verify-ca`.
    Require,
    /// TLS, with a certificate that a known authority issued.
    VerifyCa,
    /// TLS, with a certificate that a known authority issued to this host.
    VerifyFull,
}

/// The parameters of the URL that are not the driver's.
#[derive(Default)]
struct TlsParameters {
    mode: Option<Protection>,
    root_cert: Option<String>,
}

/// Reads a URL `postgres://…`.
pub(crate) fn server(url: &str) -> StoreResult<PostgresServer> {
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(StoreError::Db(
            "database.url must begin with sqlite: or postgres://".to_owned(),
        ));
    }
    let (url, parameters) = split_parameters(url)?;
    let mut config = tokio_postgres::Config::from_str(&url)
        .map_err(|e| StoreError::Db(format!("invalid database.url: {}", words(&e))))?;
    config.connect_timeout(Duration::from_secs(5)).application_name("heliograph");
    let default = if is_local(&config) { Protection::Disable } else { Protection::VerifyFull };
    let mode = parameters.mode.unwrap_or(default);
    config.ssl_mode(match mode {
        Protection::Disable => SslMode::Disable,
        Protection::Prefer => SslMode::Prefer,
        _ => SslMode::Require,
    });
    let tls = RustlsConnect::new(mode, parameters.root_cert.as_deref())?;
    Ok(PostgresServer { config, tls })
}

/// Takes the parameters of TLS out of the query of a URL.
fn split_parameters(url: &str) -> StoreResult<(String, TlsParameters)> {
    let mut found = TlsParameters::default();
    let Some((address, query)) = url.split_once('?') else { return Ok((url.to_owned(), found)) };
    let mut rest = Vec::new();
    for parameter in query.split('&') {
        match parameter.split_once('=') {
            Some(("sslmode", value)) => found.mode = Some(protection(value)?),
            Some(("sslrootcert", value)) => found.root_cert = Some(decoded(value)),
            _ => rest.push(parameter),
        }
    }
    let separator = if rest.is_empty() { "" } else { "?" };
    Ok((format!("{address}{separator}{}", rest.join("&")), found))
}

/// Resolves percent-encoding.
fn decoded(value: &str) -> String {
    let plus = value.replace('+', "%2B");
    url::form_urlencoded::parse(plus.as_bytes()).map(|(name, _)| name.into_owned()).collect()
}

fn protection(value: &str) -> StoreResult<Protection> {
    Ok(match value {
        "disable" => Protection::Disable,
        "prefer" => Protection::Prefer,
        "require" => Protection::Require,
        "verify-ca" => Protection::VerifyCa,
        "verify-full" => Protection::VerifyFull,
        _ => {
            return Err(StoreError::Db(
                "invalid database.url: sslmode must be disable, prefer, require, verify-ca or verify-full"
                    .to_owned(),
            ));
        }
    })
}

/// Returns whether all connections stay on this machine.
fn is_local(config: &tokio_postgres::Config) -> bool {
    let local_address = |address: &IpAddr| address.to_canonical().is_loopback();
    let local_host = |host: &Host| match host {
        Host::Tcp(name) => {
            name.eq_ignore_ascii_case("localhost")
                || name.parse().is_ok_and(|address| local_address(&address))
        }
        Host::Unix(_) => true,
    };
    config.get_hosts().iter().all(local_host) && config.get_hostaddrs().iter().all(local_address)
}

/// Opens TLS connections with rustls.
#[derive(Clone)]
pub(crate) struct RustlsConnect(Arc<ClientConfig>);

impl RustlsConnect {
    fn new(mode: Protection, root_cert: Option<&str>) -> StoreResult<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let invalid = |e: rustls::Error| StoreError::Db(format!("TLS to PostgreSQL: {e}"));
        let config = ClientConfig::builder_with_provider(provider.clone());
        let config = config.with_safe_default_protocol_versions().map_err(invalid)?;
        let checked = match mode {
            Protection::Disable | Protection::Prefer => None,
            Protection::Require if root_cert.is_none() => None,
            _ => Some(roots(root_cert)?),
        };
        let config = match checked {
            Some(roots) if mode == Protection::VerifyFull => config.with_root_certificates(roots),
            roots => {
                let authorities = roots.map(|roots| authorities(roots, &provider)).transpose()?;
                let verifier = Arc::new(AnyHost { authorities, provider });
                config.dangerous().with_custom_certificate_verifier(verifier)
            }
        };
        Ok(Self(Arc::new(config.with_no_client_auth())))
    }
}

/// Returns the authorities in a PEM file; without one, or with `system`, those of the operating
/// system.
fn roots(file: Option<&str>) -> StoreResult<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file.filter(|file| *file != "system") else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err(StoreError::Db(
                "the operating system has no certificates to check PostgreSQL's against: name a PEM file with \
                 sslrootcert in database.url, or set sslmode=require to accept any certificate"
                    .to_owned(),
            ));
        }
        return Ok(roots);
    };
    let unreadable =
        |why: String| StoreError::Db(format!("database.url: sslrootcert {file}: {why}"));
    let certificates =
        CertificateDer::pem_file_iter(file).map_err(|e| unreadable(e.to_string()))?;
    for certificate in certificates {
        let added = certificate.map_err(|e| e.to_string());
        added
            .and_then(|certificate| roots.add(certificate).map_err(|e| e.to_string()))
            .map_err(unreadable)?;
    }
    match roots.is_empty() {
        true => Err(unreadable("the file contains no certificate".to_owned())),
        false => Ok(roots),
    }
}

fn authorities(
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> StoreResult<Arc<WebPkiServerVerifier>> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|e| StoreError::Db(format!("TLS to PostgreSQL: {e}")))
}

/// Accepts a certificate of any host: one of these authorities, or any certificate without them.
#[derive(Debug)]
struct AnyHost {
    authorities: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyHost {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authorities) = &self.authorities else {
            return Ok(ServerCertVerified::assertion());
        };
        match authorities.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl<S> MakeTlsConnect<S> for RustlsConnect
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = TlsSocket<S>;
    type TlsConnect = RustlsHandshake;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<RustlsHandshake, Self::Error> {
        let name = ServerName::try_from(domain)?.to_owned();
        Ok(RustlsHandshake { name, config: self.0.clone() })
    }
}

/// The handshake with one host.
pub(crate) struct RustlsHandshake {
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
}

impl<S> TlsConnect<S> for RustlsHandshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = TlsSocket<S>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TlsSocket<S>>>;

    fn connect(self, stream: S) -> Self::Future {
        let connecting = TlsConnector::from(self.config).connect(self.name, stream);
        Box::pin(async move { Ok(TlsSocket(Box::new(connecting.await?))) })
    }
}

/// An encrypted connection.
pub(crate) struct TlsSocket<S>(Box<TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> tokio_postgres::tls::TlsStream for TlsSocket<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(url: &str) -> String {
        match server(url) {
            Ok(server) => format!("{:?}", server.config.get_ssl_mode()),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn other_hosts_need_tls_unless_the_url_says_otherwise() {
        for local in ["localhost", "127.0.0.1:5433", "[::1]", "%2Fvar%2Frun%2Fpostgresql"] {
            assert_eq!(mode(&format!("postgres://ann@{local}/h")), "Disable", "{local}");
        }
        for remote in ["db.example.com", "10.0.0.1", "localhost,db.example.com"] {
            let url = format!("postgres://ann@{remote}/h?sslrootcert=/none");
            assert!(mode(&url).contains("sslrootcert /none"), "{remote}");
            assert_eq!(mode(&format!("postgres://ann@{remote}/h?sslmode=disable")), "Disable");
        }
        assert_eq!(mode("postgres://ann@db/h?application_name=a&sslmode=prefer"), "Prefer");
        assert_eq!(mode("postgres://ann@localhost/h?sslmode=require"), "Require");
    }

    #[test]
    fn parameters_are_taken_out_of_the_url() {
        let url = "postgres://ann@db/h?sslrootcert=%2Fa%20b%2Bc+d.pem&options=-c%20a%3Db&sslmode=verify-ca";
        let (rest, parameters) = split_parameters(url).unwrap();
        assert_eq!(rest, "postgres://ann@db/h?options=-c%20a%3Db");
        assert_eq!(parameters.root_cert.as_deref(), Some("/a b+c+d.pem"));
        assert_eq!(parameters.mode, Some(Protection::VerifyCa));
        assert!(mode("postgres://db/h?sslmode=allow").contains("sslmode must be disable, prefer"));
    }
}
