//! `/settings/webhooks`: the list of webhook endpoints, and adding one.

use crate::error_page::PageError;
use crate::form::{FieldErrors, Form};
use crate::layout::Layout;
use crate::page;
use crate::session::{self, SessionForm, SessionRequest};
use crate::state::DashboardState;
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use event_kinds::SelectedKinds;
use heliograph_domain::webhook::WebhookEndpoint;
use heliograph_domain::wording::{self, sentence};
use heliograph_service::kernel::error::Error;
use heliograph_service::webhooks::endpoints::{self, NewEndpoint};
use std::sync::Arc;
use uuid::Uuid;

mod actions;
mod detail;
mod event_kinds;
mod history;
mod status;
mod test_delivery;
mod test_result;

const HERE: &str = "/settings/webhooks";

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new()
        .route(HERE, get(list).post(add))
        .route("/settings/webhooks/{id}", get(detail::show).post(actions::update))
        .route("/settings/webhooks/{id}/test", post(test_delivery::test))
        .route("/settings/webhooks/{id}/secret", post(actions::reveal_secret))
        .route("/settings/webhooks/{id}/rotate", post(actions::rotate_secret))
        .route("/settings/webhooks/{id}/enable", post(actions::enable))
        .route("/settings/webhooks/{id}/disable", post(actions::disable))
        .route("/settings/webhooks/{id}/remove", post(actions::remove))
        .route("/settings/webhooks/{id}/replay", post(actions::replay))
}

#[derive(Template)]
#[template(path = "webhooks.html")]
struct Page {
    layout: Layout,
    endpoints: Vec<EndpointRow>,
    form: AddForm,
}

/// An endpoint in the list.
struct EndpointRow {
    id: String,
    url: String,
    kinds: String,
    state: &'static str,
    state_text: &'static str,
    explanation: String,
}

/// The form for a new endpoint as typed, with its errors.
struct AddForm {
    idempotency_key: Uuid,
    url: String,
    url_error: String,
    selected: SelectedKinds,
}

impl EndpointRow {
    fn new(e: &WebhookEndpoint) -> Self {
        let (state, state_text) = status::badge(e);
        let (id, url) = (e.id.to_string(), e.url.clone());
        Self {
            id,
            url,
            kinds: e.kinds.names().join(", "),
            state,
            state_text,
            explanation: status::explanation(e),
        }
    }
}

impl AddForm {
    /// Returns whether a field has an error.
    fn has_errors(&self) -> bool {
        !self.url_error.is_empty() || !self.selected.error.is_empty()
    }

    fn new(app: &DashboardState, form: Option<&Form>, errors: &FieldErrors) -> Self {
        Self {
            idempotency_key: app.context.next_id().0,
            url: form.map_or("", |f| f.raw("url")).to_owned(),
            url_error: errors.get("url").to_owned(),
            selected: form.map_or(SelectedKinds::ALL, |f| SelectedKinds::from_form(f, errors)),
        }
    }
}

async fn list(
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
    uri: Uri,
) -> Result<Response, PageError> {
    let removed = "The endpoint was removed.";
    let mut layout = request.layout(&app, "webhooks", "Webhooks").await?;
    layout.notice = session::notice_from(&uri, &[("removed", removed)]);
    let form = AddForm::new(&app, None, &FieldErrors::default());
    show(&app, &request, StatusCode::OK, (layout, form)).await
}

async fn show(
    app: &DashboardState,
    request: &SessionRequest,
    status: StatusCode,
    (layout, form): (Layout, AddForm),
) -> Result<Response, PageError> {
    let all = endpoints::list(&app.context, request.visitor.details.session.account).await?;
    let here = all.iter().filter(|e| e.mode == request.mode());
    let (endpoints, nonce) = (here.map(EndpointRow::new).collect(), layout.nonce.clone());
    Ok(page::html(status, &nonce, Page { layout, endpoints, form }.render()))
}

async fn add(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = posted;
    request.visitor.require_manager()?;
    let mut errors = FieldErrors::default();
    let kinds = event_kinds::parse(&form, &mut errors);
    if form.text("url").is_empty() {
        errors.add("url", "Enter the URL of your server, starting with https://.");
    }
    if let (true, Some(kinds), Ok(once)) = (errors.is_empty(), kinds, form.request_key()) {
        let (mode, url) = (request.mode(), form.text("url").to_owned());
        let wish = NewEndpoint { mode, url, kinds, listening_until: None };
        let caller = request.caller();
        let actor = request.actor();
        match endpoints::add_once(&app.context, &caller, &actor, wish, once).await {
            Ok(id) => return Ok(session::redirect_with_notice(&format!("{HERE}/{id}"), "added")),
            Err(Error::InvalidEndpoint(why)) => {
                errors.add("url", sentence(&wording::endpoints::invalid(&why)))
            }
            Err(Error::LimitReached { limit, max }) => {
                errors.add("url", wording::limits::limit_reached(limit, max));
            }
            Err(other) => return Err(other.into()),
        }
    }
    let layout = request.layout(&app, "webhooks", "Webhooks").await?;
    let form = AddForm::new(&app, Some(&form), &errors);
    show(&app, &request, StatusCode::UNPROCESSABLE_ENTITY, (layout, form)).await
}
