//! `/settings/members`: members of the account and pending invitations.

use crate::error_page::PageError;
use crate::form::{FieldErrors, Form};
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
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use heliograph_domain::account::Role;
use heliograph_domain::email;
use heliograph_domain::id::{InvitationId, UserId};
use heliograph_domain::secret::Token;
use heliograph_domain::wording::limits;
use heliograph_service::identity::members::{self, Invitation, Invitee, Member};
use heliograph_service::identity::two_factor;
use heliograph_service::kernel::error::Error;
use std::sync::Arc;

const HERE: &str = "/settings/members";

struct MemberRow {
    id: String,
    email: String,
    initials: String,
    role: &'static str,
    you: bool,
    changeable: bool,
    removable: bool,
    two_factor: bool,
}

struct InvitationRow {
    id: String,
    email: String,
    role: &'static str,
    expires_iso: String,
    expires: String,
}

/// A role that the user can assign.
struct RoleChoice {
    name: &'static str,
    hint: &'static str,
}

/// The invitation form as typed, with its errors.
#[derive(Default)]
struct InviteForm {
    email: String,
    role: String,
    errors: FieldErrors,
}

#[derive(Template)]
#[template(path = "members.html")]
struct Page {
    layout: Layout,
    members: Vec<MemberRow>,
    invitations: Vec<InvitationRow>,
    roles: Vec<RoleChoice>,
    form: InviteForm,
    idempotency_key: String,
    email_enabled: bool,
    /// Whether the user can require two-factor authentication, and whether it is required.
    is_owner: bool,
    two_factor_required: bool,
    /// The link of a new invitation, shown only once, and the invited email address.
    link: String,
    link_for: String,
}

pub(crate) fn routes() -> Router<Arc<DashboardState>> {
    Router::new()
        .route(HERE, get(list).post(invite))
        .route("/settings/members/role", post(set_role))
        .route("/settings/members/remove", post(remove))
        .route("/settings/members/revoke", post(revoke))
        .route("/settings/members/two-factor", post(require_two_factor))
}

const NOTICES: [(&str, &str); 7] = [
    ("invited", "Invitation sent by email. The link expires in seven days."),
    ("required", "Members now need two-factor authentication."),
    ("optional", "Members no longer need two-factor authentication."),
    ("role", "Role changed."),
    ("left", "You left the account. This is another one of your accounts."),
    ("removed", "Member removed."),
    ("revoked", "Invitation revoked. The link no longer works."),
];

/// Describes the permissions of a role.
const fn hint(role: Role) -> &'static str {
    match role {
        Role::Owner => "Full access, including owners",
        Role::Admin => "Manages API keys, webhooks and members",
        Role::Member => "Sends messages and edits opt-out lists",
        Role::Viewer => "Read only",
    }
}

async fn list(
    State(app): State<Arc<DashboardState>>,
    request: SessionRequest,
    uri: Uri,
) -> Result<Response, PageError> {
    let notice = session::notice_from(&uri, &NOTICES);
    show(&app, &request, (StatusCode::OK, notice), InviteForm::default(), None).await
}

async fn show(
    app: &DashboardState,
    request: &SessionRequest,
    (status, notice): (StatusCode, Option<Notice>),
    form: InviteForm,
    new_invitation: Option<(String, String)>,
) -> Result<Response, PageError> {
    let (members, invitations) = members::list(&app.context, &request.visitor).await?;
    let layout = Layout { notice, ..request.layout(app, "members", "Members").await? };
    let signed = &request.visitor.details;
    let assignable = |role: &Role| signed.role == Role::Owner || *role != Role::Owner;
    let (link, link_for) = new_invitation.unwrap_or_default();
    let page = Page {
        members: members.into_iter().map(|m| member(m, request)).collect(),
        invitations: invitations.into_iter().map(invitation).collect(),
        roles: Role::ALL
            .into_iter()
            .filter(assignable)
            .map(|r| RoleChoice { name: r.name(), hint: hint(r) })
            .collect(),
        form: InviteForm {
            role: if form.role.is_empty() { "member".to_owned() } else { form.role },
            ..form
        },
        idempotency_key: URL_SAFE_NO_PAD.encode(app.context.random::<18>()?),
        is_owner: signed.role == Role::Owner,
        two_factor_required: signed.two_factor_required,
        email_enabled: app.context.settings().sign_up.mail_enabled,
        link,
        link_for,
        layout,
    };
    Ok(page::html(status, &page.layout.nonce.clone(), page.render()))
}

fn member(m: Member, request: &SessionRequest) -> MemberRow {
    let signed = &request.visitor.details;
    let you = m.user == signed.session.user;
    let changeable = signed.role.manages() && (signed.role == Role::Owner || m.role != Role::Owner);
    MemberRow {
        id: m.user.to_string(),
        initials: m.email.chars().take(2).collect::<String>().to_uppercase(),
        email: m.email,
        role: m.role.name(),
        you,
        changeable,
        removable: changeable || you,
        two_factor: m.two_factor,
    }
}

fn invitation(i: Invitation) -> InvitationRow {
    let expires_iso = i.expires_at.to_string();
    let expires = expires_iso.get(..10).unwrap_or_default().to_owned();
    InvitationRow {
        id: i.id.to_string(),
        email: i.email,
        role: i.role.name(),
        expires_iso,
        expires,
    }
}

async fn invite(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = &posted;
    request.visitor.require_manager()?;
    let mut errors = FieldErrors::default();
    let (email, role) = (email::parse(form.text("email")), Role::from_name(form.text("role")));
    if email.is_none() {
        errors.add("email", "Enter a valid email address, such as ann@example.com.");
    }
    if role.is_none() {
        errors.add("role", "Select a role.");
    }
    if let (Some(email), Some(role)) = (email, role) {
        let actor = request.actor();
        match members::invite(
            &app.context,
            &request.visitor,
            &actor,
            Invitee { email: &email, role },
            &form_secret(request, (&email, role), form),
        )
        .await
        {
            // Only the mailbox of the invited person gets the link.
            Ok(None) => return Ok(session::redirect_with_notice(HERE, "invited")),
            Ok(Some(token)) => {
                // The link uses the URL by which the inviting user reaches this service.
                let new_invitation =
                    (format!("{}{}", request.base_url, members::invitation_path(&token)), email);
                return show(
                    &app,
                    request,
                    (StatusCode::OK, None),
                    InviteForm::default(),
                    Some(new_invitation),
                )
                .await;
            }
            Err(Error::Conflict(reason)) => errors.add("email", reasons::conflict(&reason)),
            Err(Error::LimitReached { limit, max }) => {
                errors.add("email", limits::limit_reached(limit, max));
            }
            Err(other) => return Err(other.into()),
        }
    }
    let typed = |name| form.text(name).to_owned();
    let typed = InviteForm { email: typed("email"), role: typed("role"), errors };
    show(&app, request, (StatusCode::UNPROCESSABLE_ENTITY, None), typed, None).await
}

/// Derives a secret of an invitation form from the session token, the form's idempotency key, and
/// the content of the form. A form submitted twice creates one invitation; another email address or
/// role creates another.
fn form_secret(request: &SessionRequest, (email, role): (&str, Role), form: &Form) -> Token {
    let purpose = format!("invitation {email} {} {}", role.name(), form.raw("idempotency_key"));
    Token::from_random(&request.token().derive(&purpose))
}

fn user_id(form: &Form) -> Result<UserId, PageError> {
    form.text("id").parse().map_err(|_| PageError::invalid_form())
}

/// Redirects to the list with a notice, or shows the conflict there.
async fn finish(
    app: &DashboardState,
    request: &SessionRequest,
    result: heliograph_service::kernel::error::Result<()>,
    key: &'static str,
) -> Result<Response, PageError> {
    match result {
        Ok(()) => Ok(session::redirect_with_notice(HERE, key)),
        Err(Error::Conflict(reason)) => {
            let notice = Notice::error(reasons::conflict(&reason));
            let error = (StatusCode::CONFLICT, Some(notice));
            show(app, request, error, InviteForm::default(), None).await
        }
        Err(other) => Err(other.into()),
    }
}

async fn set_role(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = &posted;
    let role = Role::from_name(form.text("role")).ok_or_else(PageError::invalid_form)?;
    let actor = request.actor();
    let result =
        members::set_role(&app.context, &request.visitor, &actor, user_id(form)?, role).await;
    finish(&app, request, result, "role").await
}

async fn remove(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = &posted;
    let actor = request.actor();
    let user = user_id(form)?;
    let key = if user == request.visitor.details.session.user { "left" } else { "removed" };
    let result = members::remove(&app.context, &request.visitor, &actor, user).await;
    finish(&app, request, result, key).await
}

async fn revoke(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = &posted;
    let id: InvitationId = form.text("id").parse().map_err(|_| PageError::invalid_form())?;
    let actor = request.actor();
    let result = members::revoke_invitation(&app.context, &request.visitor, &actor, id).await;
    finish(&app, request, result, "revoked").await
}

async fn require_two_factor(
    State(app): State<Arc<DashboardState>>,
    posted: SessionForm,
) -> Result<Response, PageError> {
    let SessionForm { request, form } = &posted;
    let required = form.text("required") == "yes";
    let (actor, who) = (request.actor(), &request.visitor);
    let result = two_factor::require_of_members(&app.context, who, &actor, required).await;
    finish(&app, request, result, if required { "required" } else { "optional" }).await
}
