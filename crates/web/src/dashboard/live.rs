//! `GET /live`: tells a page by server-sent events when it should read again.

use crate::app::App;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::visit::Visit;
use crate::gate::Gate;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::{StreamExt, stream};
use heliograph_service::sessions;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

/// How long one stream lasts; then the browser asks again. It is shorter than a connection may be silent.
const LIFE: Duration = Duration::from_secs(45);
/// A busy account changes all the time: nobody reads faster than this.
const PAUSE: Duration = Duration::from_millis(250);
/// Where other nodes change things, their bells are not heard here: pages read again as often as this.
const OTHERS: Duration = Duration::from_secs(2);

/// What changed between the page and its stream must not be missed: it reads again at once.
const BEGUN: Bytes = Bytes::from_static(b"retry: 1000\nevent: changed\ndata: \n\n");
const CHANGED: Bytes = Bytes::from_static(b"event: changed\ndata: \n\n");

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route("/live", get(live))
}

async fn live(State(app): State<Arc<App>>, visit: Visit) -> Result<Response, Refusal> {
    let bell = app.context.bells.listen(visit.visitor.signed.session.account);
    let shared = app.context.db.is_shared();
    let (gate, end) = (app.gate.clone(), Instant::now() + LIFE);
    let stream = Stream { app, visit, bell, gate, shared, end, begun: false };
    let events = stream::unfold(stream, async |mut stream| {
        let event = stream.next().await?;
        Some((Ok::<_, Infallible>(event), stream))
    });
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(events.fuse())).into_response())
}

/// One page that listens.
struct Stream {
    app: Arc<App>,
    visit: Visit,
    bell: watch::Receiver<()>,
    gate: Gate,
    shared: bool,
    end: Instant,
    begun: bool,
}

impl Stream {
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.begun, true) {
            return Some(BEGUN);
        }
        sleep(PAUSE).await;
        let others = async {
            match self.shared {
                true => sleep(OTHERS).await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            rung = self.bell.changed() => rung.ok()?,
            () = others => {}
            () = sleep_until(self.end) => return None,
            () = self.gate.draining() => return None,
        }
        self.is_here().await.then_some(CHANGED)
    }

    /// Whether the visitor is still signed in, and looks at the same account: nobody else hears when something happens.
    async fn is_here(&self) -> bool {
        let now = sessions::recognise(&self.app.context, self.visit.token()).await;
        now.is_ok_and(|now| now.signed.session.account == self.visit.visitor.signed.session.account)
    }
}
