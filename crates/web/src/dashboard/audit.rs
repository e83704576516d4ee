//! `/settings/audit-log`: who did what, the newest first.

use crate::app::App;
use crate::dashboard::page;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::Shell;
use crate::dashboard::visit::Visit;
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::get;
use heliograph_domain::id::AuditId;
use heliograph_service::audit::{self, Deed};
use std::sync::Arc;
use uuid::Uuid;

const HERE: &str = "/settings/audit-log";
/// Lines on a page.
const PAGE: usize = 50;

struct Entry {
    iso: String,
    at: String,
    who: String,
    what: String,
    detail: String,
    address: String,
}

#[derive(Template)]
#[template(path = "dashboard/audit.html")]
struct Log {
    shell: Shell,
    entries: Vec<Entry>,
    newest: &'static str,
    older: String,
}

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route(HERE, get(log))
}

async fn log(State(app): State<Arc<App>>, visit: Visit, uri: Uri) -> Result<Response, Refusal> {
    visit.visitor.manages()?;
    let query = uri.query().unwrap_or_default();
    let before = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "before");
    let before = before.map(|(_, id)| id.parse().map_err(|_| Refusal::not_found())).transpose()?;
    let account = visit.visitor.signed.session.account;
    let limit = i64::try_from(PAGE + 1).unwrap_or(i64::MAX);
    let from = before.unwrap_or(AuditId(Uuid::max()));
    let mut all = audit::list(&app.context, account, (from, limit)).await?;
    let more = all.len() > PAGE;
    all.truncate(PAGE);
    let older = all.last().filter(|_| more).map(|(deed, _)| format!("{HERE}?before={}", deed.id));
    let shell = visit.shell(&app, "audit", "Audit log").await?;
    let page = Log {
        shell,
        entries: all.into_iter().map(entry).collect(),
        newest: if before.is_some() { HERE } else { "" },
        older: older.unwrap_or_default(),
    };
    Ok(page::html(StatusCode::OK, &page.shell.nonce.clone(), page.render()))
}

fn entry((deed, who): (Deed, Option<String>)) -> Entry {
    let Deed { actor, action, detail, address, at, .. } = deed;
    let nobody = if actor.is_some() { "somebody who is gone" } else { "the command line" };
    let iso = at.to_string();
    let (day, clock) = (iso.get(..10).unwrap_or_default(), iso.get(11..16).unwrap_or_default());
    let at = format!("{day} {clock} UTC");
    let mut what = action;
    if let Some(first) = what.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    Entry { iso, at, who: who.unwrap_or_else(|| nobody.to_owned()), what, detail, address }
}
