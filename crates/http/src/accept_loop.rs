//! The accept loop: accepts connections within limits, and ends them in order when the node drains.

use crate::body::RequestBody;
use crate::body_budget::{BodyBudget, BufferedBytes};
use crate::certificate::Tls;
use crate::client::{ClientAddress, TrustedProxies, client_network};
use crate::connection::HttpServer;
use crate::drain::RequestGate;
use crate::error_document::{ErrorDocuments, ProtocolError};
use crate::limits::{self, ListenerLimits};
use crate::tls;
use crate::usage_limit::{UsageLimit, UsageShare};
use axum::body::Body;
use axum::http::{Version, header};
use axum::response::Response;
use futures_util::FutureExt;
use hyper::Request;
use hyper::body::{Body as _, Incoming};
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tower::Service;

/// Binds a listening socket, with `SO_REUSEADDR` so that a restarted process can bind at once.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(limits::LISTEN_BACKLOG)
}

/// The options of a server.
pub struct ServerOptions {
    /// Admits requests; its controller ends the server.
    pub gate: RequestGate,
    /// The reverse proxies in front, whose `X-Forwarded-…` headers are trusted.
    pub proxies: TrustedProxies,
    /// The certificate, to serve HTTPS.
    pub tls: Option<Tls>,
    /// The limit of open files of the process.
    pub open_files: usize,
    /// Makes the responses to requests that are not valid HTTP.
    pub errors: ErrorDocuments,
}

/// Serves requests with `service` until the controller of the gate closes it.
pub async fn serve<S>(listener: TcpListener, service: S, options: ServerOptions)
where
    S: Service<Request<Body>, Response = Response, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send,
{
    let ServerOptions { gate, proxies, tls, open_files, errors } = options;
    let secure = tls.is_some();
    let budget = BodyBudget::default();
    let (trusted, documents) = (proxies.clone(), errors.clone());
    let handler = move |request: Request<Incoming>, peer| {
        let client = ClientAddress::new(peer, secure, &trusted, request.headers());
        let buffered = budget.request(client.limited());
        // HTTP/1 does not read a larger head.
        let too_large = request.version() == Version::HTTP_2
            && head_size(&request) > limits::MAX_HEAD_BYTES as usize;
        let refused = too_large.then(|| documents.response(ProtocolError::HeadTooLarge, client.ip));
        let service = service.clone();
        async move {
            match refused {
                Some(response) => Ok(response),
                None => answer(service, client, buffered, request).await,
            }
        }
    };
    let limits = ListenerLimits::within(open_files);
    let accept_loop = Listener {
        handler,
        gate: gate.clone(),
        limits,
        errors,
        tls,
        proxies,
        connection_limit: UsageLimit::default(),
        connections: JoinSet::new(),
    };
    accept_loop.run(listener, gate).await;
}

/// Returns the size of a request head as HTTP/2 counts it (RFC 9113, section 10.5.1), in bytes.
fn head_size(request: &Request<Incoming>) -> usize {
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
    let path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    fields.map(|field| field + 32).sum::<usize>() + path
}

/// Answers one request.
async fn answer<S>(
    mut service: S,
    client: ClientAddress,
    buffered: BufferedBytes,
    request: Request<Incoming>,
) -> Result<Response, Infallible>
where
    S: Service<Request<Body>, Response = Response, Error = Infallible>,
{
    let (mut head, incoming) = request.into_parts();
    head.extensions.insert(client);
    if incoming.is_end_stream() {
        return service.call(Request::from_parts(head, Body::empty())).await;
    }
    // A client that waits for `100 Continue` does not send the body after another response.
    let waits = head.headers.contains_key(header::EXPECT);
    let body = RequestBody::new(incoming, buffered);
    head.extensions.insert(body.clone());
    let response = service.call(Request::from_parts(head, Body::new(body.clone()))).await;
    if !waits && body.is_unfinished() {
        #[expect(clippy::disallowed_methods, reason = "a drain lost at shutdown loses nothing")]
        tokio::spawn(body.drain());
    }
    response
}

/// The accept loop and its open connections.
struct Listener<H> {
    handler: H,
    gate: RequestGate,
    limits: ListenerLimits,
    errors: ErrorDocuments,
    tls: Option<Tls>,
    proxies: TrustedProxies,
    connection_limit: UsageLimit<IpAddr>,
    connections: JoinSet<()>,
}

impl<H, F> Listener<H>
where
    H: Fn(Request<Incoming>, IpAddr) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Infallible>> + Send + 'static,
{
    /// Accepts connections until the gate closes, and then waits for the open ones to end.
    async fn run(mut self, listener: TcpListener, mut gate: RequestGate) {
        let limits = self.limits;
        loop {
            tokio::select! {
                result = listener.accept(), if self.connections.len() < limits.max_connections => {
                    if let Err(error) = self.accept(result) {
                        tracing::warn!(%error, "failed to accept connection");
                        tokio::time::sleep(limits::ACCEPT_RETRY_DELAY).await;
                    }
                }
                Some(_) = self.connections.join_next() => {}
                () = gate.closing() => break,
            }
        }
        // Connections that are already in the backlog are served, too.
        while let Some(Ok(accepted)) = listener.accept().now_or_never() {
            drop(self.accept(Ok(accepted)));
        }
        drop(listener);
        let ended = async { while self.connections.join_next().await.is_some() {} };
        if tokio::time::timeout(limits.close_grace * 2, ended).await.is_err() {
            tracing::debug!(
                connections = self.connections.len(),
                "connections aborted after drain time-out"
            );
            self.connections.shutdown().await;
        }
    }

    fn accept(&mut self, result: io::Result<(TcpStream, SocketAddr)>) -> io::Result<()> {
        let (socket, address) = result?;
        // Responses are small and complete, so that Nagle's algorithm would only delay them.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "failed to set TCP_NODELAY");
        }
        let permit = match self.permit(address.ip()) {
            Ok(permit) => permit,
            Err(()) => {
                tracing::debug!(%address, "too many connections from one address");
                return Ok(());
            }
        };
        let (handler, peer) = (self.handler.clone(), address.ip());
        let server = HttpServer {
            handler: move |request| handler(request, peer),
            gate: self.gate.clone(),
            limits: self.limits,
            errors: self.errors.clone(),
            peer,
        };
        match &self.tls {
            None => self.connections.spawn(server.http1(socket).map(move |()| drop(permit))),
            Some(Tls(tls)) => {
                let tls = tls.clone();
                self.connections.spawn(tls::serve(server, tls, socket).map(move |()| drop(permit)))
            }
        };
        Ok(())
    }

    /// Returns a permit for one more connection from this address. The loopback address and a
    /// trusted proxy, behind which all clients share an address, are not limited.
    fn permit(&self, from: IpAddr) -> Result<Option<UsageShare<IpAddr>>, ()> {
        if from.to_canonical().is_loopback() || self.proxies.contains(from) {
            return Ok(None);
        }
        self.connection_limit
            .try_acquire(client_network(from), 1, self.limits.max_per_address)
            .map(Some)
            .ok_or(())
    }
}

#[cfg(test)]
mod body_tests;
#[cfg(test)]
mod tests {
    use super::*;
    use crate::drain::DrainController;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n";

    type Answer = std::future::Ready<Result<Response, Infallible>>;

    fn answer(_: Request<Incoming>, _: IpAddr) -> Answer {
        std::future::ready(Ok(Response::default()))
    }

    fn accept_loop(
        controller: &DrainController,
        limits: ListenerLimits,
        proxies: TrustedProxies,
    ) -> Listener<fn(Request<Incoming>, IpAddr) -> Answer> {
        Listener {
            handler: answer as fn(_, _) -> _,
            gate: controller.gate(),
            limits,
            errors: ErrorDocuments::of_tests(),
            tls: None,
            proxies,
            connection_limit: UsageLimit::default(),
            connections: JoinSet::new(),
        }
    }

    async fn is_answered(client: &mut TcpStream) -> bool {
        let mut first = [0; 15];
        let read = client.read_exact(&mut first);
        let read = tokio::time::timeout(Duration::from_millis(100), read).await;
        read.is_ok_and(|read| read.is_ok() && first == *b"HTTP/1.1 200 OK")
    }

    #[tokio::test]
    async fn connections_beyond_the_limit_wait() {
        let controller = DrainController::new(10);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let close_grace = Duration::from_millis(100);
        let limits =
            ListenerLimits { max_connections: 2, close_grace, ..ListenerLimits::default() };
        let mut running = JoinSet::new();
        running.spawn(
            accept_loop(&controller, limits, TrustedProxies::default())
                .run(listener, controller.gate()),
        );
        let mut clients = Vec::new();
        for _ in 0..3 {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(REQUEST).await.unwrap();
            clients.push(client);
        }
        let mut third = clients.pop().unwrap();
        for client in &mut clients {
            while !is_answered(client).await {}
        }
        assert!(!is_answered(&mut third).await);
        clients.pop();
        while !is_answered(&mut third).await {}
        // A connection in the backlog at the time of closing is served, too.
        let mut fourth = TcpStream::connect(address).await.unwrap();
        fourth.write_all(REQUEST).await.unwrap();
        controller.close();
        while !is_answered(&mut fourth).await {}
        while running.join_next().await.is_some() {}
        assert!(TcpStream::connect(address).await.is_err());
    }

    #[tokio::test]
    async fn loopback_and_proxies_are_exempt_from_the_address_limit() {
        let (controller, limits) = (
            DrainController::new(10),
            ListenerLimits { max_per_address: 1, ..ListenerLimits::default() },
        );
        let (remote, loopback) =
            ("192.0.2.1".parse().unwrap(), "::ffff:127.0.0.1".parse().unwrap());
        let proxy = TrustedProxies::new(&["192.0.2.1/32".parse().unwrap()]);
        let other = TrustedProxies::new(&["192.0.2.2/32".parse().unwrap()]);
        let none = TrustedProxies::default();
        for (proxies, from, second) in [
            (none.clone(), remote, false),
            (none, loopback, true),
            (proxy, remote, true),
            (other, remote, false),
        ] {
            let listener = accept_loop(&controller, limits, proxies);
            let _first = listener.permit(from).unwrap();
            assert_eq!(listener.permit(from).is_ok(), second, "{from}");
        }
    }
}
