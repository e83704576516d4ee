//! The page of one webhook endpoint.

use crate::error_page::PageError;
use crate::format;
use crate::layout::{Layout, Notice};
use crate::page;
use crate::session::{self, SessionRequest};
use crate::state::DashboardState;
use crate::webhooks::event_kinds::SelectedKinds;
use crate::webhooks::history::{self, DeliveryFilter, DeliveryRow};
use crate::webhooks::status;
use crate::webhooks::test_result::TestResult;
use askama::Template;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use heliograph_domain::event::EventKind;
use heliograph_domain::id::EndpointId;
use heliograph_domain::webhook::WebhookEndpoint;
use heliograph_service::webhooks::endpoints;
use std::sync::Arc;
use uuid::Uuid;

/// Notices of previous actions.
const NOTICES: [(&str, &str); 6] = [
    ("added", "Endpoint added. Send a test event to check that it works."),
    ("changed", "Changes saved. They apply to new events."),
    (
        "rotated",
        "Signing secret rotated. Update your server within 24 hours; until then, both secrets are valid.",
    ),
    ("on", "Endpoint enabled. You can replay missed events."),
    ("off", "Endpoint disabled. Events are kept and can be replayed later."),
    ("replayed", "Replay queued. Events already pending are not duplicated."),
];

#[derive(Template)]
#[template(path = "webhook.html")]
struct Page {
    layout: Layout,
    /// The URL of this page, for live updates.
    here: String,
    endpoint: EndpointView,
    /// The signing secret, when it is revealed; otherwise empty.
    secret: String,
    sample_kinds: [&'static str; 3],
    sample_kind: &'static str,
    test: Option<TestResult>,
    /// The filter of the delivery log: `all`, `failed` or `pending`.
    filter: &'static str,
    deliveries: Vec<DeliveryRow>,
    newest: String,
    older: String,
    /// The URL in the form, as typed.
    url: String,
    url_error: String,
    kinds: SelectedKinds,
    idempotency_key: Uuid,
}

/// The endpoint as the page shows it.
struct EndpointView {
    id: String,
    url: String,
    on: bool,
    state: &'static str,
    state_text: &'static str,
    explanation: String,
    /// Whether it belongs to `heliograph listen`, which removes it when it ends.
    local: bool,
    created: (String, String),
    /// The time until which the previous secret is valid.
    previous_secret_until: Option<(String, String)>,
    rotate_action: String,
    remove_action: String,
}

/// One-time content of the page: a notice, the revealed secret, a test result, a rejected form.
#[derive(Default)]
pub(super) struct WebhookPageState {
    pub(super) notice: Option<Notice>,
    pub(super) secret: String,
    pub(super) test: Option<TestResult>,
    pub(super) kinds: Option<SelectedKinds>,
    /// The URL as typed, and its error.
    pub(super) url: Option<(String, String)>,
    pub(super) filter: DeliveryFilter,
}

impl EndpointView {
    fn new(app: &DashboardState, e: &WebhookEndpoint) -> Self {
        let (state, state_text) = status::badge(e);
        let old = e.old_secret.as_ref().map(|(_, until)| *until);
        let path = format!("/settings/webhooks/{}", e.id);
        Self {
            id: e.id.to_string(),
            url: e.url.clone(),
            on: e.off.is_none(),
            state,
            state_text,
            explanation: status::explanation(e),
            local: e.local,
            created: format::date_time(e.created_at),
            previous_secret_until: old.filter(|t| *t > app.context.db.now()).map(format::date_time),
            rotate_action: format!("{path}/rotate"),
            remove_action: format!("{path}/remove"),
        }
    }
}

pub(super) async fn show(
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, PageError> {
    let endpoint = find_endpoint(&app, &request, &id).await?;
    let (notice, filter) = (session::notice_from(&uri, &NOTICES), DeliveryFilter::from_uri(&uri));
    let state = WebhookPageState { notice, filter, ..WebhookPageState::default() };
    render(&app, &request, StatusCode::OK, (&endpoint, state)).await
}

/// Returns an endpoint of the selected account and mode.
pub(super) async fn find_endpoint(
    app: &DashboardState,
    request: &SessionRequest,
    id: &str,
) -> Result<WebhookEndpoint, PageError> {
    let id = EndpointId(id.parse().map_err(|_| PageError::not_found())?);
    let account = request.visitor.details.session.account;
    let endpoint = endpoints::get(&app.context, account, id).await?;
    if endpoint.mode == request.mode() { Ok(endpoint) } else { Err(PageError::not_found()) }
}

/// Renders the page.
pub(super) async fn render(
    app: &DashboardState,
    request: &SessionRequest,
    status: StatusCode,
    (endpoint, state): (&WebhookEndpoint, WebhookPageState),
) -> Result<Response, PageError> {
    let mut layout = request.layout(app, "webhooks", "Webhook").await?;
    let (cx, caller) = (&app.context, request.caller());
    let found =
        heliograph_service::webhooks::history::page(cx, &caller, endpoint, state.filter.show())
            .await?;
    let path = format!("/settings/webhooks/{}", endpoint.id);
    let WebhookPageState { notice, secret, test, kinds, url, filter } = state;
    let (url, url_error) = url.unwrap_or_else(|| (endpoint.url.clone(), String::new()));
    layout.notice = notice;
    let nonce = layout.nonce.clone();
    let page = Page {
        layout,
        here: filter.url(&path),
        endpoint: EndpointView::new(app, endpoint),
        secret,
        sample_kinds: EventKind::ALL.map(EventKind::name),
        sample_kind: test.as_ref().map_or(EventKind::MessageDelivered.name(), |t| t.kind),
        test,
        filter: filter.name(),
        deliveries: found.deliveries.into_iter().map(history::row).collect(),
        newest: filter.newest(&path),
        older: found.older.map(|o| DeliveryFilter::from(o).url(&path)).unwrap_or_default(),
        url,
        url_error,
        kinds: kinds.unwrap_or(SelectedKinds::from_kinds(endpoint.kinds)),
        idempotency_key: app.context.next_id().0,
    };
    Ok(page::html(status, &nonce, page.render()))
}
