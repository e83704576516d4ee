//! Settings → Webhooks: whom to tell what happens, tried out and looked after.

use crate::app::App;
use crate::dashboard::form::{Faults, Form};
use crate::dashboard::page;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::Shell;
use crate::dashboard::visit::{self, Posted, Visit};
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use chosen::Chosen;
use heliograph_domain::webhook::Endpoint;
use heliograph_service::error::Error;
use heliograph_service::once::Once;
use heliograph_service::webhooks::{self, Wish};
use std::sync::Arc;
use uuid::Uuid;

mod change;
mod chosen;
mod history;
mod one;
mod standing;
mod trial;

const HERE: &str = "/settings/webhooks";

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(HERE, get(list).post(add))
        .route("/settings/webhooks/{id}", get(one::show).post(change::choose))
        .route("/settings/webhooks/{id}/test", post(trial::test))
        .route("/settings/webhooks/{id}/secret", post(change::reveal))
        .route("/settings/webhooks/{id}/rotate", post(change::rotate))
        .route("/settings/webhooks/{id}/on", post(change::switch_on))
        .route("/settings/webhooks/{id}/off", post(change::switch_off))
        .route("/settings/webhooks/{id}/remove", post(change::remove))
        .route("/settings/webhooks/{id}/replay", post(change::replay))
}

#[derive(Template)]
#[template(path = "dashboard/webhooks.html")]
struct Page {
    shell: Shell,
    endpoints: Vec<Listed>,
    form: Filled,
}

/// An endpoint in the list.
struct Listed {
    id: String,
    url: String,
    kinds: String,
    state: &'static str,
    state_text: &'static str,
    why: String,
}

/// The form for a new endpoint: what was typed, and what is wrong with it.
struct Filled {
    once: Uuid,
    url: String,
    url_error: String,
    chosen: Chosen,
}

impl Listed {
    fn new(e: &Endpoint) -> Self {
        let (state, state_text) = standing::state(e);
        let (id, url) = (e.id.to_string(), e.url.clone());
        Self {
            id,
            url,
            kinds: e.kinds.names().join(", "),
            state,
            state_text,
            why: standing::why(e),
        }
    }
}

impl Filled {
    fn new(app: &App, form: Option<&Form>, faults: &Faults) -> Self {
        Self {
            once: app.context.next_id().0,
            url: form.map_or("", |f| f.raw("url")).to_owned(),
            url_error: faults.of("url").to_owned(),
            chosen: form.map_or(Chosen::ALL, |f| Chosen::typed(f, faults)),
        }
    }
}

async fn list(State(app): State<Arc<App>>, visit: Visit, uri: Uri) -> Result<Response, Refusal> {
    let removed = "The endpoint is removed. It is told nothing more.";
    let mut shell = visit.shell(&app, "webhooks", "Webhooks").await?;
    shell.notice = visit::told(&uri, &[("removed", removed)]);
    let form = Filled::new(&app, None, &Faults::default());
    show(&app, &visit, StatusCode::OK, (shell, form)).await
}

async fn show(
    app: &App,
    visit: &Visit,
    status: StatusCode,
    (shell, form): (Shell, Filled),
) -> Result<Response, Refusal> {
    let all = webhooks::list(&app.context, visit.visitor.signed.session.account).await?;
    let here = all.iter().filter(|e| e.mode == visit.mode());
    let (endpoints, nonce) = (here.map(Listed::new).collect(), shell.nonce.clone());
    Ok(page::html(status, &nonce, Page { shell, endpoints, form }.render()))
}

async fn add(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let Posted { visit, form } = posted;
    visit.visitor.manages()?;
    let mut faults = Faults::default();
    let kinds = chosen::kinds(&form, &mut faults);
    if form.text("url").is_empty() {
        faults.add("url", "write the address of your server, with https:// in front");
    }
    if let (true, Some(kinds), Ok(once)) =
        (faults.is_empty(), kinds, form.text("once").parse::<Uuid>())
    {
        let (mode, url) = (visit.mode(), form.text("url").to_owned());
        let wish = Wish { mode, url, kinds, listening_until: None };
        let once = Once { key: once.to_string(), fingerprint: [0; 32] };
        let who = (&visit.caller(), &visit.actor());
        match webhooks::add_once(&app.context, who, wish, once).await {
            Ok(id) => return Ok(visit::done(&format!("{HERE}/{id}"), "added")),
            Err(Error::BadTarget(why)) => faults.add("url", why),
            Err(other) => return Err(other.into()),
        }
    }
    let shell = visit.shell(&app, "webhooks", "Webhooks").await?;
    let form = Filled::new(&app, Some(&form), &faults);
    show(&app, &visit, StatusCode::UNPROCESSABLE_ENTITY, (shell, form)).await
}
