//! Settings → API Keys: who may come in by a program, made and revoked.

use crate::app::App;
use crate::dashboard::form::{Faults, Form};
use crate::dashboard::moment;
use crate::dashboard::page;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::{Notice, Shell};
use crate::dashboard::visit::{self, Posted, Visit};
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::account::{Mode, Scope, Scopes};
use heliograph_domain::time::Timestamp;
use heliograph_service::api_keys::{self, ApiKey, LONGEST_NAME};
use heliograph_service::error::Error;
use heliograph_service::once::Once;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

const HERE: &str = "/settings/api-keys";
/// A key that was used within this time is used now: that is how exactly it is known.
const NOW: Duration = Duration::from_secs(60);
/// A form's `once` comes back: no key is shown twice.
const BEFORE: &str = "That key was made already, and it was shown that one time. If you did not copy it, revoke it and \
                      make another.";

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(HERE, get(list).post(create))
        .route("/settings/api-keys/revoke", post(revoke))
}

#[derive(Template)]
#[template(path = "dashboard/keys.html")]
struct Page {
    shell: Shell,
    /// The one that was made just now.
    made: Option<Made>,
    keys: Vec<Key>,
    revoked: Vec<Key>,
    form: Filled,
}

/// A key that is shown this one time.
struct Made {
    name: String,
    test: bool,
    key: String,
    /// A ready line for a terminal, with this very key.
    curl: String,
}

/// A key in the list.
struct Key {
    id: String,
    name: String,
    test: bool,
    scopes: String,
    /// Instants as on the wire and in words.
    created: (String, String),
    used: Option<(String, String)>,
    used_now: bool,
    revoked: Option<(String, String)>,
}

/// The form for a new key: what was typed, and what is wrong with it.
struct Filled {
    once: Uuid,
    name: String,
    name_error: String,
    test: bool,
    send: bool,
    read: bool,
    manage: bool,
    scopes_error: String,
    mode_error: String,
}

impl Key {
    fn new(key: ApiKey, now: Timestamp) -> Self {
        Self {
            id: key.id.to_string(),
            test: key.mode == Mode::Test,
            scopes: key.scopes.names().join(", "),
            created: moment::day_and_clock(key.created_at),
            used: key.last_used_at.map(moment::day_and_clock),
            used_now: key.last_used_at.is_some_and(|at| now.since(at) < NOW),
            revoked: key.revoked_at.map(moment::day_and_clock),
            name: key.name,
        }
    }
}

impl Filled {
    fn new(form: Option<&Form>, faults: &Faults, once: Uuid) -> Self {
        let scope = |name| form.is_none_or(|f| f.all("scope").any(|s| s == name));
        Self {
            once,
            name: form.map_or("", |f| f.raw("name")).to_owned(),
            name_error: faults.of("name").to_owned(),
            test: form.is_none_or(|f| f.text("mode") != "live"),
            send: scope("send"),
            read: scope("read"),
            manage: scope("manage"),
            scopes_error: faults.of("scopes").to_owned(),
            mode_error: faults.of("mode").to_owned(),
        }
    }
}

async fn list(State(app): State<Arc<App>>, visit: Visit, uri: Uri) -> Result<Response, Refusal> {
    let revoked = "The key is revoked. The next request with it is refused.";
    let mut shell = visit.shell(&app, "keys", "API Keys").await?;
    shell.notice = visit::told(&uri, &[("revoked", revoked)]);
    let form = Filled::new(None, &Faults::default(), app.context.next_id().0);
    show(&app, &visit, StatusCode::OK, (shell, None, form)).await
}

async fn show(
    app: &App,
    visit: &Visit,
    status: StatusCode,
    (shell, made, form): (Shell, Option<Made>, Filled),
) -> Result<Response, Refusal> {
    let account = visit.visitor.signed.session.account;
    let (valid, revoked) = api_keys::newest(&app.context, account).await?;
    let now = app.context.db.now();
    let keys = |all: Vec<ApiKey>| all.into_iter().map(|k| Key::new(k, now)).collect();
    let (keys, revoked, nonce) = (keys(valid), keys(revoked), shell.nonce.clone());
    Ok(page::html(status, &nonce, Page { shell, made, keys, revoked, form }.render()))
}

/// Makes a key, and shows it on the page that answers: its address shows nothing of it, and a reload makes no other.
async fn create(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let Posted { visit, form } = posted;
    visit.visitor.manages()?;
    let mut shell = visit.shell(&app, "keys", "API Keys").await?;
    let mut faults = Faults::default();
    let wish = read(&form, &mut faults);
    let fresh = app.context.next_id().0;
    let (Some((what, name)), Ok(once)) = (wish, form.text("once").parse::<Uuid>()) else {
        let form = Filled::new(Some(&form), &faults, fresh);
        return show(&app, &visit, StatusCode::UNPROCESSABLE_ENTITY, (shell, None, form)).await;
    };
    let once = Once { key: once.to_string(), fingerprint: [0; 32] };
    let who = (&visit.caller(), &visit.actor());
    let made = match api_keys::create_once(&app.context, who, what, &name, once).await {
        Ok(Some((_, key))) => Some(Made::new(name, what.0, key.reveal(), &visit.base)),
        Ok(None) => {
            shell.notice = Some(Notice::bad(BEFORE));
            None
        }
        Err(Error::Conflict(why)) => {
            faults.add("name", why);
            let form = Filled::new(Some(&form), &faults, fresh);
            return show(&app, &visit, StatusCode::UNPROCESSABLE_ENTITY, (shell, None, form)).await;
        }
        Err(other) => return Err(other.into()),
    };
    let form = Filled::new(None, &faults, fresh);
    show(&app, &visit, StatusCode::OK, (shell, made, form)).await
}

fn read(form: &Form, faults: &mut Faults) -> Option<((Mode, Scopes), String)> {
    let name = form.text("name");
    if name.is_empty() {
        faults.add("name", "give it a name, such as that of the program");
    } else if name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control) {
        faults.add("name", format!("at most {LONGEST_NAME} printable characters"));
    }
    let mode = match form.text("mode") {
        "live" => Mode::Live,
        "test" => Mode::Test,
        _ => {
            faults.add("mode", "choose test or live");
            Mode::Test
        }
    };
    let wanted = |scope: &Scope| form.all("scope").any(|name| name == scope.name());
    let scopes: Scopes = Scope::ALL.into_iter().filter(wanted).collect();
    if scopes.names().is_empty() {
        faults.add("scopes", "choose at least one: a key that may do nothing is of no use");
    }
    faults.is_empty().then(|| ((mode, scopes), name.to_owned()))
}

impl Made {
    fn new(name: String, mode: Mode, key: &str, base: &str) -> Self {
        let body =
            r#"{"originator":"Heliograph","recipient":"+447700900123","text":"Hello, world"}"#;
        let curl = format!(
            "curl {base}/v1/send/sms -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -d '{body}'"
        );
        Self { name, test: mode == Mode::Test, key: key.to_owned(), curl }
    }
}

async fn revoke(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let Posted { visit, form } = posted;
    visit.visitor.manages()?;
    let id = form.text("id").parse().map_err(|_| Refusal::bad_form())?;
    match api_keys::revoke(&app.context, &visit.actor(), id).await {
        Ok(()) => Ok(visit::done(HERE, "revoked")),
        Err(Error::NotFound) => {
            // Who presses twice finds it done.
            let account = visit.visitor.signed.session.account;
            let (_, revoked) = api_keys::newest(&app.context, account).await?;
            let done = revoked.iter().any(|key| key.id == id);
            done.then(|| visit::done(HERE, "revoked")).ok_or_else(Refusal::not_found)
        }
        Err(other) => Err(other.into()),
    }
}
