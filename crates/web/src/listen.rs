//! Takes up connections, within limits, and lets them go in order when the node drains.

use crate::app::App;
use crate::certificate::Tls;
use crate::connection::Server;
use crate::crowd::{Crowd, Place};
use crate::gate::Gate;
use crate::limits::{self, Limits};
use crate::requests;
use crate::router::router;
use crate::tls;
use axum::response::Response;
use futures_util::FutureExt;
use hyper::Request;
use hyper::body::Incoming;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// Listens at this address, also right after another process did.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(limits::BACKLOG)
}

/// Answers requests, over TLS if it is given, until the keeper of `app.gate` closes it. The process may have
/// `files` open.
pub async fn serve(listener: TcpListener, app: App, tls: Option<Tls>, files: usize) {
    let (gate, limits, behind_proxy) = (app.gate.clone(), Limits::within(files), app.behind_proxy);
    let app = Arc::new(app);
    let (router, secure) = (router(app.clone()), tls.is_some());
    let handler =
        move |request, from| requests::answer(app.clone(), router.clone(), (from, secure), request);
    let server = Server { handler, gate: gate.clone(), limits };
    let door =
        Door { server, tls, behind_proxy, crowd: Crowd::default(), connections: JoinSet::new() };
    door.stand(listener, gate).await;
}

/// Where connections come in.
struct Door<H> {
    server: Server<H>,
    tls: Option<Tls>,
    behind_proxy: bool,
    crowd: Crowd,
    connections: JoinSet<()>,
}

impl<H, F> Door<H>
where
    H: Fn(Request<Incoming>, IpAddr) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Infallible>> + Send + 'static,
{
    /// Takes up connections until the gate closes, and then waits for those that there are.
    async fn stand(mut self, listener: TcpListener, mut gate: Gate) {
        let limits = self.server.limits;
        loop {
            tokio::select! {
                taken = listener.accept(), if self.connections.len() < limits.connections => {
                    if let Err(error) = self.take(taken) {
                        tracing::warn!(%error, "a connection could not be taken up");
                        tokio::time::sleep(limits::BREATH).await;
                    }
                }
                Some(_) = self.connections.join_next() => {}
                () = gate.closing() => break,
            }
        }
        // Who has already got through to us is answered, too.
        while let Some(Ok(taken)) = listener.accept().now_or_never() {
            drop(self.take(Ok(taken)));
        }
        drop(listener);
        let ended = async { while self.connections.join_next().await.is_some() {} };
        if tokio::time::timeout(limits.farewell * 2, ended).await.is_err() {
            tracing::debug!(connections = self.connections.len(), "connections were cut off");
            self.connections.shutdown().await;
        }
    }

    fn take(&mut self, taken: io::Result<(TcpStream, SocketAddr)>) -> io::Result<()> {
        let (socket, address) = taken?;
        // Answers are small and complete: waiting for more only costs the client time.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "a connection kept Nagle's delay");
        }
        let place = match self.place(address.ip()) {
            Ok(place) => place,
            Err(()) => {
                tracing::debug!(%address, "too many connections from one address");
                return Ok(());
            }
        };
        let Server { handler, gate, limits } = self.server.clone();
        let handler = move |request| handler(request, address.ip());
        let server = Server { handler, gate, limits };
        match &self.tls {
            None => self.connections.spawn(server.http1(socket).map(move |()| drop(place))),
            Some(Tls(tls)) => {
                let tls = tls.clone();
                self.connections.spawn(tls::serve(server, tls, socket).map(move |()| drop(place)))
            }
        };
        Ok(())
    }

    /// Room for one more from there. The operator's own machine and its proxy, from which everybody seems to
    /// come, may have all there is.
    fn place(&self, from: IpAddr) -> Result<Option<Place>, ()> {
        if self.behind_proxy || from.to_canonical().is_loopback() {
            return Ok(None);
        }
        self.crowd.place(from, self.server.limits.from_one_address).map(Some).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::GateKeeper;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n";

    type Answer = std::future::Ready<Result<Response, Infallible>>;

    fn answer(_: Request<Incoming>, _: IpAddr) -> Answer {
        std::future::ready(Ok(Response::default()))
    }

    fn door(
        keeper: &GateKeeper,
        limits: Limits,
        behind_proxy: bool,
    ) -> Door<fn(Request<Incoming>, IpAddr) -> Answer> {
        let server = Server { handler: answer as fn(_, _) -> _, gate: keeper.gate(), limits };
        let (crowd, connections) = (Crowd::default(), JoinSet::new());
        Door { server, tls: None, behind_proxy, crowd, connections }
    }

    async fn is_answered(client: &mut TcpStream) -> bool {
        let mut first = [0; 15];
        let read = client.read_exact(&mut first);
        let read = tokio::time::timeout(Duration::from_millis(100), read).await;
        read.is_ok_and(|read| read.is_ok() && first == *b"HTTP/1.1 200 OK")
    }

    #[tokio::test]
    async fn who_comes_when_all_places_are_taken_waits_for_one() {
        let keeper = GateKeeper::new(10);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let farewell = Duration::from_millis(100);
        let limits = Limits { connections: 2, farewell, ..Limits::default() };
        let mut standing = JoinSet::new();
        standing.spawn(door(&keeper, limits, false).stand(listener, keeper.gate()));
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
        // Whoever is in the queue when the door closes is taken in, too.
        let mut fourth = TcpStream::connect(address).await.unwrap();
        fourth.write_all(REQUEST).await.unwrap();
        keeper.close();
        while !is_answered(&mut fourth).await {}
        while standing.join_next().await.is_some() {}
        assert!(TcpStream::connect(address).await.is_err());
    }

    #[tokio::test]
    async fn one_address_has_its_share_but_this_machine_and_a_proxy_all() {
        let (keeper, limits) =
            (GateKeeper::new(10), Limits { from_one_address: 1, ..Limits::default() });
        let (stranger, own) = ("192.0.2.1".parse().unwrap(), "::ffff:127.0.0.1".parse().unwrap());
        for (behind_proxy, from, second) in
            [(false, stranger, false), (false, own, true), (true, stranger, true)]
        {
            let door = door(&keeper, limits, behind_proxy);
            let _first = door.place(from).unwrap();
            assert_eq!(door.place(from).is_ok(), second, "{from}");
        }
    }
}
