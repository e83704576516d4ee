//! What can be done to an endpoint on its page.

use crate::app::App;
use crate::dashboard::form::Faults;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::Notice;
use crate::dashboard::visit::{self, Posted, Visit};
use crate::dashboard::webhooks::chosen::{self, Chosen};
use crate::dashboard::webhooks::history::Wanted;
use crate::dashboard::webhooks::one::{self, Beside};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::Endpoint;
use heliograph_service::error::Error;
use heliograph_service::once::Once;
use heliograph_service::webhooks::history::Show;
use heliograph_service::webhooks::{self, Again};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// How far back all that failed is replayed: longer ago, it was tried for that long already.
const BACK: Duration = Duration::from_secs(3 * 86_400);

/// The endpoint that somebody may change, and the address of its page.
async fn own(app: &App, visit: &Visit, id: &str) -> Result<(Endpoint, String), Refusal> {
    visit.visitor.manages()?;
    let endpoint = one::find(app, visit, id).await?;
    let path = format!("/settings/webhooks/{}", endpoint.id);
    Ok((endpoint, path))
}

fn once(posted: &Posted) -> Result<Once, Refusal> {
    let once: Uuid = posted.form.text("once").parse().map_err(|_| Refusal::bad_form())?;
    Ok(Once { key: once.to_string(), fingerprint: [0; 32] })
}

pub(super) async fn choose(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Refusal> {
    let Posted { visit, form } = posted;
    let (endpoint, path) = own(&app, &visit, &id).await?;
    let mut faults = Faults::default();
    match chosen::kinds(&form, &mut faults) {
        Some(kinds) => {
            webhooks::choose(&app.context, &visit.actor(), endpoint.id, kinds).await?;
            Ok(visit::done(&path, "changed"))
        }
        None => {
            let chosen = Some(Chosen::typed(&form, &faults));
            let beside = Beside { chosen, ..Beside::default() };
            one::render(&app, &visit, StatusCode::UNPROCESSABLE_ENTITY, (&endpoint, beside)).await
        }
    }
}

/// Shows the secret on the page that answers; the audit log tells who asked.
pub(super) async fn reveal(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Refusal> {
    let visit = posted.visit;
    let (endpoint, _) = own(&app, &visit, &id).await?;
    let secret = webhooks::reveal(&app.context, &visit.actor(), endpoint.id).await?;
    let beside = Beside { secret: secret.reveal().to_owned(), ..Beside::default() };
    one::render(&app, &visit, StatusCode::OK, (&endpoint, beside)).await
}

pub(super) async fn rotate(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Refusal> {
    let (endpoint, path) = own(&app, &posted.visit, &id).await?;
    let who = (&posted.visit.caller(), &posted.visit.actor());
    webhooks::rotate_once(&app.context, who, endpoint.id, once(&posted)?).await?;
    Ok(visit::done(&path, "rotated"))
}

pub(super) async fn switch_on(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Refusal> {
    let (endpoint, path) = own(&app, &posted.visit, &id).await?;
    if endpoint.off.is_some() {
        webhooks::switch_on(&app.context, &posted.visit.actor(), endpoint.id).await?;
    }
    Ok(visit::done(&path, "on"))
}

pub(super) async fn switch_off(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Refusal> {
    let (endpoint, path) = own(&app, &posted.visit, &id).await?;
    if endpoint.off.is_none() {
        webhooks::switch_off(&app.context, &posted.visit.actor(), endpoint.id).await?;
    }
    Ok(visit::done(&path, "off"))
}

pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Refusal> {
    let (endpoint, _) = own(&app, &posted.visit, &id).await?;
    webhooks::remove(&app.context, &posted.visit.actor(), endpoint.id).await?;
    Ok(visit::done("/settings/webhooks", "removed"))
}

/// Tells one event again, or all of the last three days that the endpoint never took.
pub(super) async fn replay(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Refusal> {
    let (endpoint, path) = own(&app, &posted.visit, &id).await?;
    let (form, now) = (&posted.form, app.context.db.now());
    let again = match form.text("all") {
        "failed" => {
            let back = i64::try_from(BACK.as_millis()).unwrap_or(0);
            Again::Failed(Timestamp(now.millis() - back), now)
        }
        _ => Again::These(vec![form.text("event").parse().map_err(|_| Refusal::bad_form())?]),
    };
    let what = (again, once(&posted)?);
    let done = webhooks::replay_once(&app.context, &posted.visit.caller(), endpoint.id, what).await;
    match done {
        Ok(None | Some(1..)) => Ok(visit::done(&path, "replayed")),
        Ok(Some(0)) => {
            let notice = Some(Notice::good(
                "There is nothing to replay: it was taken, or it waits already.",
            ));
            let wanted = Wanted::from(Show::Waiting);
            let beside = Beside { notice, wanted, ..Beside::default() };
            one::render(&app, &posted.visit, StatusCode::OK, (&endpoint, beside)).await
        }
        Err(Error::BadTarget(why)) => {
            let beside = Beside { notice: Some(Notice::bad(why)), ..Beside::default() };
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            one::render(&app, &posted.visit, status, (&endpoint, beside)).await
        }
        Err(other) => Err(other.into()),
    }
}
