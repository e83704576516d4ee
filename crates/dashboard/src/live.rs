//! `GET /live`: server-sent events that tell open pages to reload their live parts.

use crate::error_page::PageError;
use crate::live_updates::{StreamShare, Viewers};
use crate::session::SessionRequest;
use crate::state::DashboardState;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::{StreamExt, stream};
use heliograph_domain::account_limit::AccountLimit;
use heliograph_domain::id::SessionId;
use heliograph_http::RequestGate;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Lifetime of one stream; then the browser reconnects. Shorter than the idle time-out of
/// connections.
const LIFETIME: Duration = Duration::from_secs(45);

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
    let session = &request.visitor.details.session;
    let (cx, updates) = (&app.context, &app.live_updates);
    let share = updates.open(cx, session.account, request.client.into());
    let max = || cx.limits.max(session.account, AccountLimit::EventStreams).unwrap_or(u32::MAX);
    let stream = EventStream {
        _share: share.ok_or_else(|| PageError::too_many_streams(max()))?,
        session: session.id,
        viewers: updates.subscribe(cx, session.account),
        gate: app.gate.clone(),
        end: Instant::now() + LIFETIME,
        started: false,
    };
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
    _share: StreamShare,
    session: SessionId,
    viewers: watch::Receiver<Viewers>,
    gate: RequestGate,
    end: Instant,
    started: bool,
}

impl EventStream {
    /// Returns the next event. The stream ends with its session, and when the session shows another
    /// account, so that no one else learns of changes.
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.started, true) {
            return Some(FIRST);
        }
        tokio::select! {
            changed = self.viewers.changed() => changed.ok()?,
            () = sleep_until(self.end) => return None,
            () = self.gate.draining() => return None,
        }
        self.viewers.borrow_and_update().contains(&self.session).then_some(CHANGED)
    }
}
