//! `/settings/people`: who belongs to the account, and who is asked to.

use crate::app::App;
use crate::dashboard::form::{Faults, Form};
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
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use heliograph_domain::account::Role;
use heliograph_domain::email;
use heliograph_domain::id::{InvitationId, UserId};
use heliograph_domain::secret::Token;
use heliograph_service::error::Error;
use heliograph_service::people::{self, Invitation, Member};
use std::sync::Arc;

const HERE: &str = "/settings/people";

struct Person {
    id: String,
    email: String,
    initials: String,
    role: &'static str,
    you: bool,
    changeable: bool,
    removable: bool,
    second_step: bool,
}

struct Invited {
    id: String,
    email: String,
    role: &'static str,
    until_iso: String,
    until: String,
}

/// A role that can be given.
struct Choice {
    name: &'static str,
    hint: &'static str,
}

/// What was typed, and what is wrong with it.
#[derive(Default)]
struct Typed {
    email: String,
    role: String,
    faults: Faults,
}

#[derive(Template)]
#[template(path = "dashboard/people.html")]
struct People {
    shell: Shell,
    people: Vec<Person>,
    invited: Vec<Invited>,
    roles: Vec<Choice>,
    form: Typed,
    /// Makes the same form, sent twice, one invitation.
    once: String,
    mail: bool,
    /// A fresh invitation: its link, and for whom.
    link: String,
    link_for: String,
}

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(HERE, get(list).post(invite))
        .route("/settings/people/role", post(set_role))
        .route("/settings/people/remove", post(remove))
        .route("/settings/people/withdraw", post(withdraw))
}

const TOLD: [(&str, &str); 4] = [
    ("role", "The role is changed."),
    ("left", "You have left that account. This is another one of yours."),
    ("removed", "This person does not belong to the account any more."),
    ("withdrawn", "The invitation is taken back; its link does not work any more."),
];

/// What a role is for, in a line.
const fn hint(role: Role) -> &'static str {
    match role {
        Role::Owner => "Everything, also who else is an owner.",
        Role::Admin => "Keys, webhooks and people.",
        Role::Member => "Sends messages, and looks after lists.",
        Role::Viewer => "Looks on.",
    }
}

async fn list(State(app): State<Arc<App>>, visit: Visit, uri: Uri) -> Result<Response, Refusal> {
    let notice = visit::told(&uri, &TOLD);
    show(&app, &visit, (StatusCode::OK, notice), Typed::default(), None).await
}

async fn show(
    app: &App,
    visit: &Visit,
    (status, notice): (StatusCode, Option<Notice>),
    form: Typed,
    fresh: Option<(String, String)>,
) -> Result<Response, Refusal> {
    let (members, invited) = people::list(&app.context, &visit.visitor).await?;
    let shell = Shell { notice, ..visit.shell(app, "people", "People").await? };
    let signed = &visit.visitor.signed;
    let given = |role: &Role| signed.role == Role::Owner || *role != Role::Owner;
    let (link, link_for) = fresh.unwrap_or_default();
    let page = People {
        people: members.into_iter().map(|m| person(m, visit)).collect(),
        invited: invited.into_iter().map(invited_as).collect(),
        roles: Role::ALL
            .into_iter()
            .filter(given)
            .map(|r| Choice { name: r.name(), hint: hint(r) })
            .collect(),
        form: Typed {
            role: if form.role.is_empty() { "member".to_owned() } else { form.role },
            ..form
        },
        once: URL_SAFE_NO_PAD.encode(app.context.random::<18>()?),
        mail: app.context.settings().entrance.mail,
        link,
        link_for,
        shell,
    };
    Ok(page::html(status, &page.shell.nonce.clone(), page.render()))
}

fn person(m: Member, visit: &Visit) -> Person {
    let signed = &visit.visitor.signed;
    let you = m.user == signed.session.user;
    let changeable = signed.role.manages() && (signed.role == Role::Owner || m.role != Role::Owner);
    Person {
        id: m.user.to_string(),
        initials: m.email.chars().take(2).collect::<String>().to_uppercase(),
        email: m.email,
        role: m.role.name(),
        you,
        changeable,
        removable: changeable || you,
        second_step: m.second_factor,
    }
}

fn invited_as(i: Invitation) -> Invited {
    let until_iso = i.expires_at.to_string();
    let until = until_iso.get(..10).unwrap_or_default().to_owned();
    Invited { id: i.id.to_string(), email: i.email, role: i.role.name(), until_iso, until }
}

async fn invite(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let Posted { visit, form } = &posted;
    visit.visitor.manages()?;
    let mut faults = Faults::default();
    let (email, role) = (email::parse(form.text("email")), Role::from_name(form.text("role")));
    if email.is_none() {
        faults.add("email", "Write an address like ann@example.com.");
    }
    if role.is_none() {
        faults.add("role", "Choose what this person may do.");
    }
    if let (Some(email), Some(role)) = (email, role) {
        let with = (&visit.visitor, &visit.actor());
        match people::invite(
            &app.context,
            with,
            (&email, role),
            secret(visit, (&email, role), form),
        )
        .await
        {
            Ok(token) => {
                // As the person who hands it on reaches this service.
                let fresh = (format!("{}{}", visit.base, people::path(&token)), email);
                return show(&app, visit, (StatusCode::OK, None), Typed::default(), Some(fresh))
                    .await;
            }
            Err(Error::Conflict(why)) => faults.add("email", why),
            Err(other) => return Err(other.into()),
        }
    }
    let typed = |name| form.text(name).to_owned();
    let typed = Typed { email: typed("email"), role: typed("role"), faults };
    show(&app, visit, (StatusCode::UNPROCESSABLE_ENTITY, None), typed, None).await
}

/// The secret of an invitation, from what nobody else has: the session's secret, and what this form alone says. Another
/// person or role is another invitation.
fn secret(visit: &Visit, (email, role): (&str, Role), form: &Form) -> Token {
    let what = format!("invitation {email} {} {}", role.name(), form.raw("once"));
    Token::from_random(&visit.token().derive(&what))
}

fn whom(form: &Form) -> Result<UserId, Refusal> {
    form.text("id").parse().map_err(|_| Refusal::bad_form())
}

/// To the list, or what stands against it, said there.
async fn finish(
    app: &App,
    visit: &Visit,
    done: heliograph_service::error::Result<()>,
    word: &'static str,
) -> Result<Response, Refusal> {
    match done {
        Ok(()) => Ok(visit::done(HERE, word)),
        Err(Error::Conflict(why)) => {
            let told = (StatusCode::CONFLICT, Some(Notice::bad(why)));
            show(app, visit, told, Typed::default(), None).await
        }
        Err(other) => Err(other.into()),
    }
}

async fn set_role(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let Posted { visit, form } = &posted;
    let role = Role::from_name(form.text("role")).ok_or_else(Refusal::bad_form)?;
    let with = (&visit.visitor, &visit.actor());
    let done = people::set_role(&app.context, with, whom(form)?, role).await;
    finish(&app, visit, done, "role").await
}

async fn remove(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let Posted { visit, form } = &posted;
    let with = (&visit.visitor, &visit.actor());
    let whom = whom(form)?;
    let word = if whom == visit.visitor.signed.session.user { "left" } else { "removed" };
    let done = people::remove(&app.context, with, whom).await;
    finish(&app, visit, done, word).await
}

async fn withdraw(State(app): State<Arc<App>>, posted: Posted) -> Result<Response, Refusal> {
    let Posted { visit, form } = &posted;
    let id: InvitationId = form.text("id").parse().map_err(|_| Refusal::bad_form())?;
    let with = (&visit.visitor, &visit.actor());
    let done = people::withdraw(&app.context, with, id).await;
    finish(&app, visit, done, "withdrawn").await
}
