//! A connection that begins with a TLS handshake, which also settles on HTTP/2 or HTTP/1.1.

use crate::connection::Server;
use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use std::convert::Infallible;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// HTTP/2, as ALPN names it.
pub(crate) const H2: &[u8] = b"h2";
/// HTTP/1.1, as ALPN names it.
pub(crate) const HTTP_1_1: &[u8] = b"http/1.1";
/// For whoever writes `http://` for `https://`.
const WRONG_SCHEME: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\
    Connection: close\r\nContent-Length: 57\r\n\r\nThis port speaks HTTPS: begin the address with https://.\r\n";

/// Serves one connection over TLS.
pub(crate) async fn serve<H, F>(server: Server<H>, tls: TlsAcceptor, socket: TcpStream)
where
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Result<Response, Infallible>> + Send + 'static,
{
    match tokio::time::timeout(server.limits.handshake, handshake(tls, socket)).await {
        Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(H2) => {
            server.http2(stream).await;
        }
        Ok(Ok(stream)) => server.http1(stream).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

async fn handshake(
    tls: TlsAcceptor,
    mut socket: TcpStream,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut first = [0];
    socket.peek(&mut first).await?;
    // A TLS record begins with a small number, a request of plain HTTP with its method.
    if first[0].is_ascii_uppercase() {
        socket.write_all(WRONG_SCHEME).await?;
        return Err(std::io::Error::other("plain HTTP where HTTPS is spoken"));
    }
    tls.accept(socket).await
}
