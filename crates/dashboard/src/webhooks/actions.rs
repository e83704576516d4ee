//! Actions on the page of a webhook endpoint.

use crate::error_page::PageError;
use crate::form::FieldErrors;
use crate::layout::Notice;
use crate::session::{self, SessionForm, SessionRequest};
use crate::state::DashboardState;
use crate::webhooks::detail::{self, WebhookPageState};
use crate::webhooks::event_kinds::{self, SelectedKinds};
use crate::webhooks::history::DeliveryFilter;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::WebhookEndpoint;
use heliograph_domain::wording::{self, sentence};
use heliograph_service::kernel::error::Error;
use heliograph_service::webhooks::endpoints::{self, EndpointChange};
use heliograph_service::webhooks::history::HistoryFilter;
use heliograph_service::webhooks::replay::{self, ReplayRequest, ReplaySelection};
use std::sync::Arc;
use std::time::Duration;

/// The period whose failed events are replayed: retries last as long.
const REPLAY_PERIOD: Duration = Duration::from_secs(3 * 86_400);

/// Returns an endpoint that the user may change, and the path of its page.
async fn manageable(
    app: &DashboardState,
    request: &SessionRequest,
    id: &str,
) -> Result<(WebhookEndpoint, String), PageError> {
    request.visitor.require_manager()?;
    let endpoint = detail::find_endpoint(app, request, id).await?;
    let path = format!("/settings/webhooks/{}", endpoint.id);
    Ok((endpoint, path))
}

/// Changes the URL and the event types.
pub(super) async fn update(
    State(app): State<Arc<DashboardState>>,
    Path(id): Path<String>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = posted;
    let (endpoint, path) = manageable(&app, &request, &id).await?;
    let mut errors = FieldErrors::default();
    let kinds = event_kinds::parse(&form, &mut errors);
    let url = form.text("url").to_owned();
    if kinds.is_some() {
        let change = EndpointChange { url: Some(url.clone()), kinds };
        match endpoints::update(&app.context, &request.actor(), endpoint.id, change).await {
            Ok(()) => return Ok(session::redirect_with_notice(&path, "changed")),
            Err(Error::InvalidEndpoint(why)) => {
                errors.add("url", sentence(&wording::endpoints::invalid(&why)));
            }
            Err(other) => return Err(other.into()),
        }
    }
    let state = WebhookPageState {
        kinds: Some(SelectedKinds::from_form(&form, &errors)),
        url: Some((url, errors.get("url").to_owned())),
        ..WebhookPageState::default()
    };
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    detail::render(&app, &request, status, (&endpoint, state)).await
}

/// Shows the signing secret in the response; the audit log records it.
pub(super) async fn reveal_secret(
    State(app): State<Arc<DashboardState>>,
    Path(id): Path<String>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let request = posted.request;
    let (endpoint, _) = manageable(&app, &request, &id).await?;
    let secret = endpoints::reveal(&app.context, &request.actor(), endpoint.id).await?;
    let state =
        WebhookPageState { secret: secret.reveal().to_owned(), ..WebhookPageState::default() };
    detail::render(&app, &request, StatusCode::OK, (&endpoint, state)).await
}

pub(super) async fn rotate_secret(
    State(app): State<Arc<DashboardState>>,
    Path(id): Path<String>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let (endpoint, path) = manageable(&app, &posted.request, &id).await?;
    let caller = posted.request.caller();
    let actor = posted.request.actor();
    let once = posted.form.request_key()?;
    endpoints::rotate_once(&app.context, &caller, &actor, endpoint.id, once).await?;
    Ok(session::redirect_with_notice(&path, "rotated"))
}

pub(super) async fn enable(
    State(app): State<Arc<DashboardState>>,
    Path(id): Path<String>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let (endpoint, path) = manageable(&app, &posted.request, &id).await?;
    if endpoint.off.is_some() {
        endpoints::switch_on(&app.context, &posted.request.actor(), endpoint.id).await?;
    }
    Ok(session::redirect_with_notice(&path, "on"))
}

pub(super) async fn disable(
    State(app): State<Arc<DashboardState>>,
    Path(id): Path<String>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let (endpoint, path) = manageable(&app, &posted.request, &id).await?;
    if endpoint.off.is_none() {
        endpoints::switch_off(&app.context, &posted.request.actor(), endpoint.id).await?;
    }
    Ok(session::redirect_with_notice(&path, "off"))
}

pub(super) async fn remove(
    State(app): State<Arc<DashboardState>>,
    Path(id): Path<String>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let (endpoint, _) = manageable(&app, &posted.request, &id).await?;
    endpoints::remove(&app.context, &posted.request.actor(), endpoint.id).await?;
    Ok(session::redirect_with_notice("/settings/webhooks", "removed"))
}

/// Sends one event again, or all failed events of the last three days.
pub(super) async fn replay(
    State(app): State<Arc<DashboardState>>,
    Path(id): Path<String>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let (endpoint, path) = manageable(&app, &posted.request, &id).await?;
    let (form, now) = (&posted.form, app.context.db.now());
    let again = match form.text("all") {
        "failed" => {
            let back = i64::try_from(REPLAY_PERIOD.as_millis()).unwrap_or(0);
            ReplaySelection::Failed(Timestamp(now.millis() - back), now)
        }
        _ => ReplaySelection::Events(vec![
            form.text("event").parse().map_err(|_| PageError::invalid_form())?,
        ]),
    };
    let again = ReplayRequest { endpoint: endpoint.id, selection: again };
    let once = posted.form.request_key()?;
    let (caller, actor) = (posted.request.caller(), posted.request.actor());
    let done = replay::replay_once(&app.context, &caller, &actor, again, once).await;
    match done {
        Ok(None | Some(1..)) => Ok(session::redirect_with_notice(&path, "replayed")),
        Ok(Some(0)) => {
            let notice =
                Some(Notice::success("Nothing to replay: events were delivered or are pending."));
            let filter = DeliveryFilter::from(HistoryFilter::Waiting);
            let state = WebhookPageState { notice, filter, ..WebhookPageState::default() };
            detail::render(&app, &posted.request, StatusCode::OK, (&endpoint, state)).await
        }
        Err(Error::InvalidEndpoint(why)) => {
            let state = WebhookPageState {
                notice: Some(Notice::error(sentence(&wording::endpoints::invalid(&why)))),
                ..WebhookPageState::default()
            };
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            detail::render(&app, &posted.request, status, (&endpoint, state)).await
        }
        Err(other) => Err(other.into()),
    }
}
