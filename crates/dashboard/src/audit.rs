//! `/settings/audit-log`: the audit log of the account, newest first.

use crate::error_page::PageError;
use crate::format;
use crate::layout::Layout;
use crate::page;
use crate::session::SessionRequest;
use crate::state::DashboardState;
use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::get;
use heliograph_domain::id::AuditId;
use heliograph_service::kernel::audit::{
    self, AuditAction, AuditEntry, SignInFailure, SignInMethod,
};
use std::sync::Arc;
use uuid::Uuid;

const HERE: &str = "/settings/audit-log";
/// Entries per page.
const PAGE_SIZE: usize = 50;

struct Entry {
    iso: String,
    at: String,
    actor: String,
    action: String,
    detail: String,
    address: String,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct Page {
    layout: Layout,
    entries: Vec<Entry>,
    newest: &'static str,
    older: String,
}

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new().route(HERE, get(log))
}

async fn log(
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
    uri: Uri,
) -> Result<Response, PageError> {
    request.visitor.require_manager()?;
    let query = uri.query().unwrap_or_default();
    let before = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "before");
    let before =
        before.map(|(_, id)| id.parse().map_err(|_| PageError::not_found())).transpose()?;
    let account = request.visitor.details.session.account;
    let limit = i64::try_from(PAGE_SIZE + 1).unwrap_or(i64::MAX);
    let from = before.unwrap_or(AuditId(Uuid::max()));
    let mut all = audit::list(&app.context, account, from, limit).await?;
    let more = all.len() > PAGE_SIZE;
    all.truncate(PAGE_SIZE);
    let older = all.last().filter(|_| more).map(|(deed, _)| format!("{HERE}?before={}", deed.id));
    let layout = request.layout(&app, "audit", "Audit log").await?;
    let page = Page {
        layout,
        entries: all.into_iter().map(entry).collect(),
        newest: if before.is_some() { HERE } else { "" },
        older: older.unwrap_or_default(),
    };
    Ok(page::html(StatusCode::OK, &page.layout.nonce.clone(), page.render()))
}

fn entry((deed, email): (AuditEntry, Option<String>)) -> Entry {
    let AuditEntry { actor, action, detail, address, at, .. } = deed;
    let unnamed = if actor.is_some() { "Removed user" } else { "Command line" };
    let (iso, at) = format::date_time(at);
    let (action, detail) = match AuditAction::from_code(&action) {
        Some(known) => (action_text(known).to_owned(), detail_text(known, detail)),
        None => (action, detail),
    };
    let actor = email.unwrap_or_else(|| unnamed.to_owned());
    Entry { iso, at, actor, action, detail, address }
}

const fn action_text(action: AuditAction) -> &'static str {
    match action {
        AuditAction::AccountOpened => "Account opened",
        AuditAction::CreditAdded => "Credit added",
        AuditAction::LimitChanged => "Limit changed",
        AuditAction::SignedIn => "Signed in",
        AuditAction::SignInFailed => "Sign-in failed",
        AuditAction::SignInLinkCreated => "Sign-in link created",
        AuditAction::PasswordResetLinkCreated => "Password reset link created",
        AuditAction::SessionEnded => "Session ended",
        AuditAction::OtherSessionsEnded => "Other sessions ended",
        AuditAction::MemberSessionsEnded => "Sessions ended by the operator",
        AuditAction::EmailConfirmed => "Email address confirmed",
        AuditAction::UnconfirmedSetupDropped => "Setup of an unconfirmed person removed",
        AuditAction::PasswordChanged => "Password changed",
        AuditAction::PasswordResetRequested => "Password reset requested",
        AuditAction::PasswordReset => "Password reset",
        AuditAction::TwoFactorEnabled => "Two-factor authentication enabled",
        AuditAction::TwoFactorDisabled => "Two-factor authentication disabled",
        AuditAction::TwoFactorRequired => "Two-factor authentication required",
        AuditAction::TwoFactorOptional => "Two-factor authentication made optional",
        AuditAction::RecoveryCodesRenewed => "Recovery codes generated",
        AuditAction::MemberInvited => "Member invited",
        AuditAction::InvitationRevoked => "Invitation revoked",
        AuditAction::MemberJoined => "Member joined",
        AuditAction::RoleChanged => "Role changed",
        AuditAction::MemberRemoved => "Member removed",
        AuditAction::ApiKeyCreated => "API key created",
        AuditAction::ApiKeyRevoked => "API key revoked",
        AuditAction::WebhookAdded => "Webhook added",
        AuditAction::WebhookChanged => "Webhook changed",
        AuditAction::WebhookRemoved => "Webhook removed",
        AuditAction::WebhookDisabled => "Webhook disabled",
        AuditAction::WebhookEnabled => "Webhook enabled",
        AuditAction::WebhookSecretRevealed => "Webhook secret revealed",
        AuditAction::WebhookSecretRotated => "Webhook secret rotated",
        AuditAction::WebhookReplayed => "Events replayed",
        AuditAction::BackupRestored => "Restored from a backup",
        AuditAction::NumberAssigned => "Number assigned",
        AuditAction::NumberRemoved => "Number moved to another account",
        AuditAction::MessageCancelled => "Message cancelled",
        AuditAction::OptoutAdded => "Opt-out added",
        AuditAction::OptoutsImported => "Opt-outs imported",
        AuditAction::OptoutRemoved => "Opt-out removed",
        AuditAction::OptoutListRemoved => "Opt-out list removed",
    }
}

fn detail_text(action: AuditAction, detail: String) -> String {
    let text = match action {
        AuditAction::SignedIn => SignInMethod::from_code(&detail).map(method_text),
        AuditAction::SignInFailed => SignInFailure::from_code(&detail).map(failure_text),
        _ => None,
    };
    text.map_or(detail, str::to_owned)
}

const fn method_text(method: SignInMethod) -> &'static str {
    match method {
        SignInMethod::Password => "by password",
        SignInMethod::AuthenticatorApp => "by password and code",
        SignInMethod::RecoveryCode => "by password and recovery code",
        SignInMethod::MagicLink => "by sign-in link",
        SignInMethod::OperatorLink => "by sign-in link of the operator",
        SignInMethod::Invitation => "by invitation",
        SignInMethod::SignUp => "by signing up",
    }
}

const fn failure_text(failure: SignInFailure) -> &'static str {
    match failure {
        SignInFailure::WrongPassword => "wrong password",
        SignInFailure::WrongCode => "wrong code",
    }
}
