//! TLS connections: the handshake, and the choice of HTTP/2 or HTTP/1.1 by ALPN.

use crate::connection::HttpServer;
use crate::error_document::ProtocolError;
use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use std::convert::Infallible;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The ALPN id of HTTP/2.
pub(crate) const H2: &[u8] = b"h2";
/// The ALPN id of HTTP/1.1.
pub(crate) const HTTP_1_1: &[u8] = b"http/1.1";
/// Serves one connection over TLS.
pub(crate) async fn serve<H, F>(server: HttpServer<H>, tls: TlsAcceptor, socket: TcpStream)
where
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Result<Response, Infallible>> + Send + 'static,
{
    let plain_http = || server.errors.http1(ProtocolError::PlainHttp, server.peer);
    let handshake = handshake(tls, socket, plain_http);
    match tokio::time::timeout(server.limits.handshake_timeout, handshake).await {
        Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(H2) => {
            server.http2(stream).await;
        }
        Ok(Ok(stream)) => server.http1(stream).await,
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake timed out"),
    }
}

async fn handshake(
    tls: TlsAcceptor,
    mut socket: TcpStream,
    plain_http: impl Fn() -> Vec<u8>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut first = [0];
    socket.peek(&mut first).await?;
    // A TLS record begins with a small number, a plain HTTP request with its method.
    if first[0].is_ascii_uppercase() {
        socket.write_all(&plain_http()).await?;
        socket.shutdown().await?;
        // Closing a socket with unread bytes resets the connection, and the client loses the
        // response.
        let _ = socket.read(&mut [0; 4 << 10]).await?;
        return Err(std::io::Error::other("plain HTTP on the HTTPS port"));
    }
    tls.accept(socket).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate;
    use crate::drain::DrainController;
    use crate::error_document::ErrorDocuments;
    use crate::limits::ListenerLimits;
    use futures_util::FutureExt;
    use tokio::net::TcpListener;
    use tokio::time::Instant;

    /// Returns a connected client, and the future that serves its connection over TLS.
    async fn client() -> (TcpStream, impl Future<Output = ()>) {
        let home = tempfile::tempdir().unwrap();
        let (cert, key) = (home.path().join("cert.pem"), home.path().join("key.pem"));
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&cert, pair.cert.pem()).unwrap();
        std::fs::write(&key, pair.signing_key.serialize_pem()).unwrap();
        let (tls, _) = certificate::read(&cert, &key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, _) = listener.accept().await.unwrap();
        let handler = |_| std::future::ready(Ok(Response::default()));
        let (gate, limits) = (DrainController::new(1).gate(), ListenerLimits::default());
        let (errors, peer) = (ErrorDocuments::of_tests(), std::net::Ipv4Addr::LOCALHOST.into());
        (client, serve(HttpServer { handler, gate, limits, errors, peer }, tls.0, socket))
    }

    #[tokio::test(start_paused = true)]
    async fn handshake_times_out() {
        // No bytes at all, or the first half of a record.
        for begin in [&b""[..], b"\x16\x03\x01\x01\x00abc"] {
            let (mut client, served) = client().await;
            client.write_all(begin).await.unwrap();
            let begun = Instant::now();
            served.await;
            assert_eq!(begun.elapsed().as_secs(), 10);
        }
    }

    #[tokio::test]
    async fn plain_http_gets_a_response() {
        let (mut client, served) = client().await;
        client.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").await.unwrap();
        let mut response = String::new();
        let (_, read) =
            tokio::join!(served, client.read_to_string(&mut response).map(|r| r.is_ok()));
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(
            read && head.starts_with("HTTP/1.1 400 ") && body.starts_with("PlainHttp"),
            "{response}"
        );
        assert!(head.contains(&format!("content-length: {}", body.len())), "{response}");
    }
}
