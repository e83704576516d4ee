//! `GET /live`: server-sent events that tell open pages to reload their live parts.

use crate::error_page::PageError;
use crate::session::SessionRequest;
use crate::state::DashboardState;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::{StreamExt, stream};
use heliograph_http::RequestGate;
use heliograph_service::identity::sessions;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

/// Lifetime of one stream; then the browser reconnects. Shorter than the idle time-out of
/// connections.
const LIFETIME: Duration = Duration::from_secs(45);
/// The shortest gap between two events, for accounts that change all the time.
const MIN_GAP: Duration = Duration::from_millis(250);
/// The polling interval of multi-node installations: changes on other nodes are not notified here.
const POLL: Duration = Duration::from_secs(2);

/// The first event, sent at once: the page may have missed changes before the stream began.
const FIRST: Bytes = Bytes::from_static(b"retry: 1000\nevent: changed\ndata: \n\n");
const CHANGED: Bytes = Bytes::from_static(b"event: changed\ndata: \n\n");

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new().route("/live", get(live))
}

async fn live(
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
) -> Result<Response, PageError> {
    let changes = app.context.notifier.subscribe(request.visitor.details.session.account);
    let shared = app.context.db.is_shared();
    let (gate, end) = (app.gate.clone(), Instant::now() + LIFETIME);
    let stream = EventStream { app, request, changes, gate, shared, end, started: false };
    let events = stream::unfold(stream, async |mut stream| {
        let event = stream.next().await?;
        Some((Ok::<_, Infallible>(event), stream))
    });
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(events.fuse())).into_response())
}

/// The event stream of one open page.
struct EventStream {
    app: Arc<DashboardState>,
    request: SessionRequest,
    changes: watch::Receiver<()>,
    gate: RequestGate,
    shared: bool,
    end: Instant,
    started: bool,
}

impl EventStream {
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.started, true) {
            return Some(FIRST);
        }
        sleep(MIN_GAP).await;
        let poll = async {
            match self.shared {
                true => sleep(POLL).await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = self.changes.changed() => changed.ok()?,
            () = poll => {}
            () = sleep_until(self.end) => return None,
            () = self.gate.draining() => return None,
        }
        self.is_valid().await.then_some(CHANGED)
    }

    /// Returns whether the session is still valid and shows the same account, so that no one else
    /// learns of changes.
    async fn is_valid(&self) -> bool {
        let now = sessions::authenticate(&self.app.context, self.request.token()).await;
        now.is_ok_and(|now| {
            now.details.session.account == self.request.visitor.details.session.account
        })
    }
}
