//! The test button: sends a signed sample, and shows on the spot what came of it.

use crate::app::App;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::visit::{Posted, Visit};
use crate::dashboard::webhooks::one::{self, Beside};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use heliograph_domain::event::Kind;
use heliograph_domain::webhook::Endpoint;
use heliograph_service::webhooks;
use heliograph_service::webhooks::trial::Trial;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// How much longer than the endpoint may take a test may wait for its turn.
const GRACE: Duration = Duration::from_secs(5);
/// On a busy account the bell rings all the time: nobody looks more often than this.
const PAUSE: Duration = Duration::from_millis(25);
/// Another node may send it, whose bell is not heard here.
const LOOK: Duration = Duration::from_millis(250);

/// A test and its outcome.
pub(super) struct Tried {
    pub(super) kind: &'static str,
    /// `good` or `bad`.
    pub(super) state: &'static str,
    pub(super) verdict: String,
    pub(super) took: String,
    pub(super) wrong: String,
    pub(super) fix: String,
    /// What was sent, head and body.
    pub(super) request: String,
    pub(super) answer: String,
}

pub(super) async fn test(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Refusal> {
    let Posted { visit, form } = posted;
    visit.visitor.manages()?;
    let endpoint = one::find(&app, &visit, &id).await?;
    let kind = Kind::from_name(form.text("kind")).ok_or_else(Refusal::bad_form)?;
    let trial = Some(tried(&app, &visit, &endpoint, kind).await?);
    // A test can switch the endpoint off: by 410 Gone.
    let endpoint = one::find(&app, &visit, &id).await?;
    let beside = Beside { trial, ..Beside::default() };
    one::render(&app, &visit, StatusCode::OK, (&endpoint, beside)).await
}

async fn tried(
    app: &App,
    visit: &Visit,
    endpoint: &Endpoint,
    kind: Kind,
) -> Result<Tried, Refusal> {
    let (cx, account) = (&app.context, visit.visitor.signed.session.account);
    let mut bell = cx.bells.listen(account);
    let event = webhooks::test(cx, account, endpoint.id, kind).await?;
    let end = Instant::now() + cx.settings().webhook_timeout + GRACE;
    loop {
        if let Some(trial) = Trial::of(cx, endpoint, event).await? {
            let (head, body) = trial.request(cx, endpoint).await?;
            return Ok(Tried::new(kind, trial, format!("{head}\n{body}")));
        }
        sleep(PAUSE).await;
        tokio::select! {
            Ok(()) = bell.changed() => {}
            () = sleep(LOOK) => {}
            () = sleep_until(end) => return Ok(Tried::unsent(kind)),
        }
    }
}

impl Tried {
    fn new(kind: Kind, trial: Trial, request: String) -> Self {
        let verdict = match trial.status {
            Some(status) => format!("It answered {status}"),
            None => "There was no answer".to_owned(),
        };
        let status = trial.status.map(|status| format!("HTTP {status}"));
        let (detail, body) = (trial.detail.clone(), trial.body.clone());
        let answer = match status {
            Some(status) => [status, body.unwrap_or_default()].join("\n\n"),
            None => detail.clone().unwrap_or_default(),
        };
        let advice = |part: fn(heliograph_domain::trouble::Advice) -> &'static str| {
            trial.advice.map_or("", part).to_owned()
        };
        Self {
            kind: kind.name(),
            state: if trial.taken() { "good" } else { "bad" },
            verdict,
            took: took(trial.took),
            wrong: advice(|a| a.wrong),
            fix: advice(|a| a.fix),
            request,
            answer: answer.trim_end().to_owned(),
        }
    }

    /// Nobody took it up in time.
    fn unsent(kind: Kind) -> Self {
        let fix = "No node of this installation is sending webhooks, or all are busy with others. It stays lined up, and \
                   shows among the deliveries when it was sent.";
        Self {
            kind: kind.name(),
            state: "bad",
            verdict: "It was not sent in time".to_owned(),
            took: String::new(),
            wrong: "The test still waits".to_owned(),
            fix: fix.to_owned(),
            request: String::new(),
            answer: String::new(),
        }
    }
}

/// A stretch of time, in the unit that suits it.
pub(super) fn took(millis: i32) -> String {
    match millis {
        ..1_000 => format!("{millis} ms"),
        _ => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
    }
}
