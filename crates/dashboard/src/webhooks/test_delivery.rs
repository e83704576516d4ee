//! Test delivery: sends a signed sample event and shows request and response.

use crate::error_page::PageError;
use crate::session::{SessionForm, SessionRequest};
use crate::state::DashboardState;
use crate::webhooks::detail::{self, WebhookPageState};
use crate::webhooks::test_result::TestResult;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use heliograph_domain::event::EventKind;
use heliograph_domain::webhook::WebhookEndpoint;
use heliograph_service::webhooks::endpoints;
use heliograph_service::webhooks::test_delivery::TestDelivery;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// The time a test waits for a free worker, on top of the request time-out.
const GRACE: Duration = Duration::from_secs(5);
/// The shortest gap between two checks, for accounts that change all the time.
const MIN_GAP: Duration = Duration::from_millis(25);
/// The polling interval: another node may send the test, which is not notified here.
const POLL: Duration = Duration::from_millis(250);

pub(super) async fn test(
    State(app): State<Arc<DashboardState>>,
    Path(id): Path<String>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = posted;
    request.visitor.require_manager()?;
    let endpoint = detail::find_endpoint(&app, &request, &id).await?;
    let kind = EventKind::from_name(form.text("kind")).ok_or_else(PageError::invalid_form)?;
    let test = Some(run(&app, &request, &endpoint, kind).await?);
    // A response of 410 Gone disables the endpoint.
    let endpoint = detail::find_endpoint(&app, &request, &id).await?;
    let state = WebhookPageState { test, ..WebhookPageState::default() };
    detail::render(&app, &request, StatusCode::OK, (&endpoint, state)).await
}

async fn run(
    app: &DashboardState,
    request: &SessionRequest,
    endpoint: &WebhookEndpoint,
    kind: EventKind,
) -> Result<TestResult, PageError> {
    let (cx, account) = (&app.context, request.visitor.details.session.account);
    let mut changes = cx.notifier.subscribe(account);
    let event = endpoints::send_test(cx, account, endpoint.id, kind).await?;
    let end = Instant::now() + cx.settings().webhook_timeout + GRACE;
    loop {
        if let Some(trial) = TestDelivery::load(cx, endpoint, event).await? {
            let (head, body) = trial.request(cx, endpoint).await?;
            return Ok(TestResult::new(kind, trial, format!("{head}\n{body}")));
        }
        sleep(MIN_GAP).await;
        tokio::select! {
            Ok(()) = changes.changed() => {}
            () = sleep(POLL) => {}
            () = sleep_until(end) => return Ok(TestResult::not_sent(kind)),
        }
    }
}
