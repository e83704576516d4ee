//! `/settings/api-keys`: creating, listing and revoking API keys.

use crate::error_page::PageError;
use crate::form::{FieldErrors, Form};
use crate::format;
use crate::layout::{Layout, Notice};
use crate::page;
use crate::reasons;
use crate::session::{self, SessionForm, SessionRequest};
use crate::state::DashboardState;
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use heliograph_domain::account::{Mode, Scope, Scopes};
use heliograph_domain::fields::KeyName;
use heliograph_domain::time::Timestamp;
use heliograph_service::identity::api_keys::{self, ApiKeyRecord, KeySpec};
use heliograph_service::kernel::error::{ConflictReason, Error};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

const HERE: &str = "/settings/api-keys";
/// The precision of the last use: a key used within this time shows “Just now”.
const JUST_NOW: Duration = Duration::from_secs(60);
/// The error for a form submitted twice: a key is never shown twice.
const ALREADY_CREATED: &str =
    "This key was already created and shown. If you did not copy it, revoke it and create another.";

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new()
        .route(HERE, get(list).post(create))
        .route("/settings/api-keys/revoke", post(revoke))
}

#[derive(Template)]
#[template(path = "api_keys.html")]
struct Page {
    layout: Layout,
    /// The key that was just created.
    new_key: Option<NewKey>,
    keys: Vec<KeyRow>,
    revoked: Vec<KeyRow>,
    form: CreateForm,
}

/// A new key, shown only once.
struct NewKey {
    name: String,
    test: bool,
    key: String,
    /// A curl command with this key.
    curl: String,
}

/// A key in the list.
struct KeyRow {
    id: String,
    name: String,
    /// The beginning of the key.
    prefix: String,
    test: bool,
    scopes: String,
    /// Times in RFC 3339 and as text.
    created: (String, String),
    used: Option<(String, String)>,
    used_now: bool,
    revoked: Option<(String, String)>,
}

/// The form for a new key as typed, with its errors.
struct CreateForm {
    idempotency_key: Uuid,
    name: String,
    name_error: String,
    test: bool,
    send: bool,
    read: bool,
    manage: bool,
    scopes_error: String,
    mode_error: String,
}

impl KeyRow {
    fn new(key: ApiKeyRecord, now: Timestamp) -> Self {
        Self {
            id: key.id.to_string(),
            test: key.mode == Mode::Test,
            scopes: key.scopes.names().join(", "),
            created: format::date_time(key.created_at),
            used: key.last_used_at.map(format::date_time),
            used_now: key.last_used_at.is_some_and(|at| now.since(at) < JUST_NOW),
            revoked: key.revoked_at.map(format::date_time),
            prefix: key.prefix,
            name: key.name,
        }
    }
}

impl CreateForm {
    /// Returns whether a field has an error.
    fn has_errors(&self) -> bool {
        [&self.name_error, &self.scopes_error, &self.mode_error].iter().any(|e| !e.is_empty())
    }

    fn new(form: Option<&Form>, errors: &FieldErrors, idempotency_key: Uuid) -> Self {
        let scope = |name| form.is_none_or(|f| f.all("scope").any(|s| s == name));
        Self {
            idempotency_key,
            name: form.map_or("", |f| f.raw("name")).to_owned(),
            name_error: errors.get("name").to_owned(),
            test: form.is_none_or(|f| f.text("mode") != "live"),
            send: scope("send"),
            read: scope("read"),
            manage: scope("manage"),
            scopes_error: errors.get("scopes").to_owned(),
            mode_error: errors.get("mode").to_owned(),
        }
    }
}

async fn list(
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
    uri: Uri,
) -> Result<Response, PageError> {
    let revoked = "API key revoked. Requests with this key are now rejected.";
    let mut layout = request.layout(&app, "keys", "API keys").await?;
    layout.notice = session::notice_from(&uri, &[("revoked", revoked)]);
    let form = CreateForm::new(None, &FieldErrors::default(), app.context.next_id().0);
    show(&app, &request, StatusCode::OK, (layout, None, form)).await
}

async fn show(
    app: &DashboardState,
    request: &SessionRequest,
    status: StatusCode,
    (layout, new_key, form): (Layout, Option<NewKey>, CreateForm),
) -> Result<Response, PageError> {
    let account = request.visitor.details.session.account;
    let (valid, revoked) = api_keys::newest(&app.context, account).await?;
    let now = app.context.db.now();
    let keys = |all: Vec<ApiKeyRecord>| all.into_iter().map(|k| KeyRow::new(k, now)).collect();
    let (keys, revoked, nonce) = (keys(valid), keys(revoked), layout.nonce.clone());
    Ok(page::html(status, &nonce, Page { layout, new_key, keys, revoked, form }.render()))
}

/// Creates a key and shows it in the response to the form. Neither the URL nor a reload shows it
/// again.
async fn create(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = posted;
    request.visitor.require_manager()?;
    let mut layout = request.layout(&app, "keys", "API keys").await?;
    let mut errors = FieldErrors::default();
    let input = read(&form, &mut errors);
    let next_key = app.context.next_id().0;
    let (Some((what, name)), Ok(once)) = (input, form.request_key()) else {
        let form = CreateForm::new(Some(&form), &errors, next_key);
        return show(&app, &request, StatusCode::UNPROCESSABLE_ENTITY, (layout, None, form)).await;
    };
    let (who, actor) = (&request.visitor, request.actor());
    let spec = KeySpec { mode: what.0, scopes: what.1, name: &name };
    let new_key = match api_keys::create_once(&app.context, who, &actor, spec, once).await {
        Ok(Some((_, key))) => {
            Some(NewKey::new(name.into_string(), what.0, key.reveal(), &request.base_url))
        }
        Ok(None) => {
            layout.notice = Some(Notice::error(ALREADY_CREATED));
            None
        }
        Err(Error::Conflict(reason)) => {
            let field = if reason == ConflictReason::EmailUnconfirmed { "mode" } else { "name" };
            errors.add(field, reasons::conflict(&reason));
            let form = CreateForm::new(Some(&form), &errors, next_key);
            return show(&app, &request, StatusCode::UNPROCESSABLE_ENTITY, (layout, None, form))
                .await;
        }
        Err(other) => return Err(other.into()),
    };
    let form = CreateForm::new(None, &errors, next_key);
    show(&app, &request, StatusCode::OK, (layout, new_key, form)).await
}

fn read(form: &Form, errors: &mut FieldErrors) -> Option<((Mode, Scopes), KeyName)> {
    if form.text("name").is_empty() {
        errors.add("name", "Enter a name, such as the name of the app.");
    }
    let name = form.parse("name", errors);
    let mode = match form.text("mode") {
        "live" => Mode::Live,
        "test" => Mode::Test,
        _ => {
            errors.add("mode", "Select test or live.");
            Mode::Test
        }
    };
    let wanted = |scope: &Scope| form.all("scope").any(|name| name == scope.name());
    let scopes: Scopes = Scope::ALL.into_iter().filter(wanted).collect();
    if scopes.names().is_empty() {
        errors.add("scopes", "Select at least one permission.");
    }
    Some(((mode, scopes), name?)).filter(|_| errors.is_empty())
}

impl NewKey {
    fn new(name: String, mode: Mode, key: &str, base: &str) -> Self {
        let body =
            r#"{"originator":"+447700900800","recipient":"+447700900123","text":"Hello, world"}"#;
        let curl = format!(
            "curl {base}/v1/send/sms -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -d '{body}'"
        );
        Self { name, test: mode == Mode::Test, key: key.to_owned(), curl }
    }
}

async fn revoke(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = posted;
    request.visitor.require_manager()?;
    let id = form.text("id").parse().map_err(|_| PageError::invalid_form())?;
    match api_keys::revoke(&app.context, &request.actor(), id).await {
        Ok(()) => Ok(session::redirect_with_notice(HERE, "revoked")),
        Err(Error::NotFound) => {
            // A form submitted twice: already revoked.
            let account = request.visitor.details.session.account;
            let (_, revoked) = api_keys::newest(&app.context, account).await?;
            let done = revoked.iter().any(|key| key.id == id);
            done.then(|| session::redirect_with_notice(HERE, "revoked"))
                .ok_or_else(PageError::not_found)
        }
        Err(other) => Err(other.into()),
    }
}
