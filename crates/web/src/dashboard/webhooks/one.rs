//! One endpoint's page.

use crate::app::App;
use crate::dashboard::moment;
use crate::dashboard::page;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::{Notice, Shell};
use crate::dashboard::visit::{self, Visit};
use crate::dashboard::webhooks::chosen::Chosen;
use crate::dashboard::webhooks::history::{self, Delivery, Wanted};
use crate::dashboard::webhooks::standing;
use crate::dashboard::webhooks::trial::Tried;
use askama::Template;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use heliograph_domain::event::Kind;
use heliograph_domain::id::EndpointId;
use heliograph_domain::webhook::Endpoint;
use heliograph_service::webhooks;
use std::sync::Arc;
use uuid::Uuid;

/// What was done on the page before, by its word in the address.
const TOLD: [(&str, &str); 6] = [
    ("added", "The endpoint is registered. Send it a test to see whether all is well."),
    ("changed", "Saved. It holds for what happens from now on."),
    (
        "rotated",
        "There is a new secret. For 24 hours the one before it signs as well: put the new one in your server.",
    ),
    ("on", "The endpoint is on. What it missed can be replayed."),
    ("off", "The endpoint is off. What happens meanwhile is kept, and can be replayed."),
    ("replayed", "Lined up: it is told again what it is not about to be told anyway."),
];

#[derive(Template)]
#[template(path = "dashboard/webhook.html")]
struct Page {
    shell: Shell,
    /// The address of this page, which is read again when something changed.
    here: String,
    endpoint: View,
    /// The signing secret, when it was asked for.
    secret: String,
    sample_kinds: [&'static str; 3],
    sample_kind: &'static str,
    trial: Option<Tried>,
    /// Which deliveries are shown: `all`, `failed` or `waiting`.
    show: &'static str,
    deliveries: Vec<Delivery>,
    newest: String,
    older: String,
    chosen: Chosen,
    /// What makes a double submit harmless.
    once: Uuid,
}

/// The endpoint as the page shows it.
struct View {
    id: String,
    url: String,
    on: bool,
    state: &'static str,
    state_text: &'static str,
    why: String,
    /// Of `heliograph listen`, which takes it away when it ends.
    local: bool,
    created: (String, String),
    /// Until when the secret before this one signs as well.
    old_until: Option<(String, String)>,
    rotate_action: String,
    remove_action: String,
}

/// What a page shows besides the endpoint and its deliveries.
#[derive(Default)]
pub(super) struct Beside {
    pub(super) notice: Option<Notice>,
    pub(super) secret: String,
    pub(super) trial: Option<Tried>,
    pub(super) chosen: Option<Chosen>,
    pub(super) wanted: Wanted,
}

impl View {
    fn new(app: &App, e: &Endpoint) -> Self {
        let (state, state_text) = standing::state(e);
        let old = e.old_secret.as_ref().map(|(_, until)| *until);
        let path = format!("/settings/webhooks/{}", e.id);
        Self {
            id: e.id.to_string(),
            url: e.url.clone(),
            on: e.off.is_none(),
            state,
            state_text,
            why: standing::why(e),
            local: e.local,
            created: moment::day_and_clock(e.created_at),
            old_until: old.filter(|t| *t > app.context.db.now()).map(moment::day_and_clock),
            rotate_action: format!("{path}/rotate"),
            remove_action: format!("{path}/remove"),
        }
    }
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    visit: Visit,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let endpoint = find(&app, &visit, &id).await?;
    let (notice, wanted) = (visit::told(&uri, &TOLD), Wanted::of(&uri));
    let beside = Beside { notice, wanted, ..Beside::default() };
    render(&app, &visit, StatusCode::OK, (&endpoint, beside)).await
}

/// The endpoint of this number in the account and the mode that are looked at.
pub(super) async fn find(app: &App, visit: &Visit, id: &str) -> Result<Endpoint, Refusal> {
    let id = EndpointId(id.parse().map_err(|_| Refusal::not_found())?);
    let account = visit.visitor.signed.session.account;
    let endpoint = webhooks::get(&app.context, account, id).await?;
    if endpoint.mode == visit.mode() { Ok(endpoint) } else { Err(Refusal::not_found()) }
}

/// The page with what was asked for.
pub(super) async fn render(
    app: &App,
    visit: &Visit,
    status: StatusCode,
    (endpoint, beside): (&Endpoint, Beside),
) -> Result<Response, Refusal> {
    let mut shell = visit.shell(app, "webhooks", "Webhook").await?;
    let (cx, caller) = (&app.context, visit.caller());
    let found = webhooks::history::page(cx, &caller, endpoint, beside.wanted.show()).await?;
    let path = format!("/settings/webhooks/{}", endpoint.id);
    let Beside { notice, secret, trial, chosen, wanted } = beside;
    shell.notice = notice;
    let nonce = shell.nonce.clone();
    let page = Page {
        shell,
        here: wanted.address(&path),
        endpoint: View::new(app, endpoint),
        secret,
        sample_kinds: Kind::CHOICES.map(Kind::name),
        sample_kind: trial.as_ref().map_or(Kind::MessageDelivered.name(), |t| t.kind),
        trial,
        show: wanted.name(),
        deliveries: found.deliveries.into_iter().map(history::view).collect(),
        newest: wanted.newest(&path),
        older: found.older.map(|o| Wanted::from(o).address(&path)).unwrap_or_default(),
        chosen: chosen.unwrap_or(Chosen::of(endpoint.kinds)),
        once: app.context.next_id().0,
    };
    Ok(page::html(status, &nonce, page.render()))
}
