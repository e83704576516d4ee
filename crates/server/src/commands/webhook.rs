//! `heliograph webhook`.

use crate::commands::arguments::{Desk, there};
use crate::output;
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use heliograph_domain::account::Mode;
use heliograph_domain::event::Kind;
use heliograph_domain::id::{AccountId, EndpointId, EventId};
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::{Endpoint, Kinds};
use heliograph_service::audit::Actor;
use heliograph_service::context::Context;
use heliograph_service::webhooks::trial::Trial;
use heliograph_service::webhooks::{self, Again, Wish};
use heliograph_service::{accounts, error};
use heliograph_store::attempts::Attempt;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// How long a test may take before its sender gives up: longer than an endpoint may take to answer.
const TEST: Duration = Duration::from_secs(40);
/// How often the outcome of a test is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// What can be done with webhook endpoints.
#[derive(Subcommand, Debug)]
pub(crate) enum Webhook {
    /// Register an endpoint; prints its number and its secret as JSON
    #[command(
        after_help = "Example:\n  heliograph webhook add --account ann@example.com --url https://example.com/hook --live"
    )]
    Add {
        /// Whose: the account's email address
        #[arg(long, value_name = "EMAIL")]
        account: String,
        /// Where the POSTs go
        #[arg(long)]
        url: String,
        /// What it is told, with commas between; everything when nothing is said
        #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = kind)]
        events: Vec<Kind>,
        /// Told of real messages
        #[arg(long, conflicts_with = "test")]
        live: bool,
        /// Told of test messages (what happens when nothing is said)
        #[arg(long)]
        test: bool,
    },
    /// List an account's endpoints, and how each is doing
    #[command(after_help = "Example:\n  heliograph webhook list --account ann@example.com")]
    List {
        /// Whose: the account's email address
        #[arg(long, value_name = "EMAIL")]
        account: String,
    },
    /// Have a signed sample sent by the running service, and say what came back
    #[command(after_help = "Example:\n  heliograph webhook test 1 --event message.failed")]
    Test {
        /// The endpoint's number, as 'webhook list' shows it
        endpoint: i32,
        /// Of what kind the sample is
        #[arg(long, value_parser = kind, default_value = "message.delivered")]
        event: Kind,
    },
    /// Show the last attempts at an endpoint that went wrong, and what succeeded after them
    #[command(after_help = "Example:\n  heliograph webhook attempts 1 --limit 5")]
    Attempts {
        /// The endpoint's number
        endpoint: i32,
        /// How many
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(i64).range(1..=1000))]
        limit: i64,
    },
    /// Tell an endpoint things again
    #[command(
        after_help = "Example:\n  heliograph webhook replay 1 --failed --from 2026-11-20T09:00:00Z"
    )]
    Replay(Replay),
    /// Give an endpoint a new secret and print it as JSON; the old one signs too for 24 hours
    #[command(after_help = "Example:\n  heliograph webhook rotate 1")]
    Rotate {
        /// The endpoint's number
        endpoint: i32,
    },
    /// Switch an endpoint on again; what it missed can be replayed
    #[command(after_help = "Example:\n  heliograph webhook on 1")]
    On {
        /// The endpoint's number
        endpoint: i32,
    },
    /// Switch an endpoint off: it is told nothing, but what happens is kept
    #[command(after_help = "Example:\n  heliograph webhook off 1")]
    Off {
        /// The endpoint's number
        endpoint: i32,
    },
    /// Remove an endpoint
    #[command(after_help = "Example:\n  heliograph webhook remove 1")]
    Remove {
        /// The endpoint's number
        endpoint: i32,
    },
}

/// What is told again, and to whom.
#[derive(Args, Debug)]
pub(crate) struct Replay {
    /// The endpoint's number
    endpoint: i32,
    /// This event, by its webhook-id; again for more
    #[arg(long, value_name = "ID", conflicts_with_all = ["failed", "from", "to"])]
    event: Vec<EventId>,
    /// Only what the endpoint never took
    #[arg(long)]
    failed: bool,
    /// What happened from this instant on, like 2026-11-20T09:00:00Z; without it, everything that is kept
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// What happened before this instant; without it, until now
    #[arg(long, value_name = "TIME")]
    to: Option<Timestamp>,
}

/// Reads the name of a kind of events.
pub(crate) fn kind(text: &str) -> Result<Kind, String> {
    let names: Vec<&str> = Kind::CHOICES.into_iter().map(Kind::name).collect();
    Kind::from_name(text.trim()).ok_or_else(|| format!("there are {}", names.join(", ")))
}

/// The endpoint with this number, whosever it is, and who changes it here.
async fn known(cx: &Context, number: i32) -> anyhow::Result<(Endpoint, Actor)> {
    let endpoint = found(webhooks::by_number(cx, EndpointId(number)).await, number)?;
    let by = Actor::operator(endpoint.account);
    Ok((endpoint, by))
}

/// The account of an email address.
pub(crate) async fn owner(cx: &Context, email: &str) -> anyhow::Result<AccountId> {
    let found = accounts::by_email(cx, &email.trim().to_lowercase()).await;
    let found = there(found, || format!("no account for {email}: see 'heliograph account list'"));
    Ok(found?.id)
}

pub(crate) async fn run(desk: &Desk, what: Webhook) -> anyhow::Result<ExitCode> {
    let cx = &desk.context;
    match what {
        Webhook::Add { account, url, events, live, test: _ } => {
            let account = owner(cx, &account).await?;
            let mode = if live { Mode::Live } else { Mode::Test };
            let kinds = if events.is_empty() { Kinds::ALL } else { events.into_iter().collect() };
            let wish = Wish { mode, url, kinds, listening_until: None };
            let (by, secret) = (Actor::operator(account), webhooks::secret(cx)?);
            let made = webhooks::add(cx, &by, wish, secret).await.context("--url")?;
            let (id, secret) = (made.id.0, made.secret.reveal());
            output::result(&json!({ "id": id, "secret": secret }).to_string());
        }
        Webhook::List { account } => {
            let mut all = Vec::new();
            let account = owner(cx, &account).await?;
            for endpoint in webhooks::list(cx, account).await? {
                all.push(listed(&endpoint, webhooks::waiting(cx, account, endpoint.id).await?));
            }
            output::list(desk.json, all);
        }
        Webhook::Test { endpoint, event } => return test(desk, endpoint, event).await,
        Webhook::Attempts { endpoint, limit } => attempts(desk, endpoint, limit).await?,
        Webhook::Replay(what) => replay(desk, what).await?,
        Webhook::Rotate { endpoint } => {
            let ((_, by), secret) = (known(cx, endpoint).await?, webhooks::secret(cx)?);
            let until = webhooks::rotate(cx, &by, EndpointId(endpoint), &secret).await;
            let until = found(until, endpoint)?.to_string();
            let (id, secret) = (endpoint, secret.reveal());
            let told = json!({ "id": id, "secret": secret, "oldSecretUntil": until });
            output::result(&told.to_string());
        }
        Webhook::On { endpoint } => {
            let (_, by) = known(cx, endpoint).await?;
            found(webhooks::switch_on(cx, &by, EndpointId(endpoint)).await, endpoint)?;
            output::talk(&format!(
                "endpoint {endpoint} is on; 'webhook replay {endpoint} --failed' tells it what it missed"
            ));
            confirm(desk, &json!({ "id": endpoint, "on": true }));
        }
        Webhook::Off { endpoint } => {
            let (_, by) = known(cx, endpoint).await?;
            let done = webhooks::switch_off(cx, &by, EndpointId(endpoint)).await;
            there(done, || {
                format!(
                    "there is no endpoint {endpoint} that is on: see 'heliograph webhook list --account EMAIL'"
                )
            })?;
            output::talk(&format!("endpoint {endpoint} is off"));
            confirm(desk, &json!({ "id": endpoint, "on": false }));
        }
        Webhook::Remove { endpoint } => {
            let (_, by) = known(cx, endpoint).await?;
            found(webhooks::remove(cx, &by, EndpointId(endpoint)).await, endpoint)?;
            output::talk(&format!("endpoint {endpoint} is removed"));
            confirm(desk, &json!({ "id": endpoint, "removed": true }));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn found<T>(done: error::Result<T>, endpoint: i32) -> anyhow::Result<T> {
    there(done, || {
        format!("there is no endpoint {endpoint}: see 'heliograph webhook list --account EMAIL'")
    })
}

/// For scripts, which get a document from everything.
fn confirm(desk: &Desk, done: &Value) {
    if desk.json {
        output::result(&done.to_string());
    }
}

fn listed(e: &Endpoint, waiting: i64) -> (Value, String) {
    let text = |t: Option<Timestamp>| t.map(|t| t.to_string());
    let (failing, off) = (text(e.failing_since), text(e.off.map(|(since, _)| since)));
    let reason = e.off.map(|(_, reason)| reason.detail());
    let told = json!({ "id": e.id.0, "mode": e.mode.name(), "url": e.url, "events": e.kinds.names(),
        "createdAt": e.created_at.to_string(), "failingSince": failing, "offSince": off,
        "offReason": reason, "waiting": waiting });
    let state = match (reason, failing) {
        (Some(reason), _) => format!("off since {}: {reason}", off.unwrap_or_default()),
        (None, Some(since)) => format!("failing since {since}"),
        (None, None) => "on".to_owned(),
    };
    let events = e.kinds.names().join(",");
    let words = format!("{}\t{}\t{}\t{events}\t{state}\t{waiting} waiting", e.id, e.mode, e.url);
    (told, words)
}

async fn test(desk: &Desk, number: i32, event: Kind) -> anyhow::Result<ExitCode> {
    let (cx, (endpoint, _)) = (&desk.context, known(&desk.context, number).await?);
    let event = found(webhooks::test(cx, endpoint.account, endpoint.id, event).await, number)?;
    let asked = tokio::time::Instant::now();
    loop {
        if let Some(trial) = Trial::of(cx, &endpoint, event).await? {
            tell(desk, &trial);
            return Ok(if trial.taken() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        if asked.elapsed() > TEST {
            bail!(
                "nobody sent it within {} s: is the service running ('heliograph serve')?",
                TEST.as_secs()
            );
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Says how a test went, and what to do about it.
fn tell(desk: &Desk, trial: &Trial) {
    let Trial { event, status, took, detail, body, advice, .. } = trial;
    let fix = advice.map(|a| a.fix);
    let told = json!({ "event": event.to_string(), "success": trial.taken(), "status": status,
        "milliseconds": took, "detail": detail, "body": body, "fix": fix });
    let words = match (detail, status) {
        (Some(detail), _) => detail.clone(),
        (None, Some(status)) => format!("it answered {status}"),
        (None, None) => "there was no answer".to_owned(),
    };
    // What an endpoint says must not speak to the terminal.
    let said = body.as_deref().map_or(String::new(), |b| format!("\n{}", Value::from(b)));
    let fix = advice.map_or(String::new(), |a| format!("\n{}. {}", a.wrong, a.fix));
    output::either(desk.json, &told, &format!("{words}, after {took} ms{said}{fix}"));
}

async fn attempts(desk: &Desk, number: i32, limit: i64) -> anyhow::Result<()> {
    let (cx, (endpoint, _)) = (&desk.context, known(&desk.context, number).await?);
    let all = webhooks::attempts(cx, (endpoint.account, endpoint.id), limit).await?;
    output::list(desk.json, all.into_iter().map(attempted).collect());
    Ok(())
}

fn attempted(a: Attempt) -> (Value, String) {
    let (event, at) = (a.event.to_string(), a.at.to_string());
    let status = Some(a.outcome).filter(|s| *s > 0);
    let told = json!({ "event": event, "at": at, "status": status, "milliseconds": a.duration,
        "detail": a.detail, "body": a.body });
    let words = a.detail.unwrap_or_else(|| format!("it answered {}", a.outcome));
    // What an endpoint says must not speak to the terminal.
    let body = a.body.map_or(String::new(), |b| format!("\t{}", Value::String(b)));
    (told, format!("{at}\t{event}\t{words}\t{} ms{body}", a.duration))
}

async fn replay(desk: &Desk, what: Replay) -> anyhow::Result<()> {
    let (cx, (endpoint, _)) = (&desk.context, known(&desk.context, what.endpoint).await?);
    let (from, to) = (what.from.unwrap_or(Timestamp(0)), what.to.unwrap_or(cx.db.now()));
    if from >= to && what.to.is_none() {
        bail!("--from {from} lies in the future: nothing has happened since");
    }
    if from >= to {
        bail!("--from must be before --to: nothing happened between {from} and {to}");
    }
    let again = match what {
        Replay { event, .. } if !event.is_empty() => Again::These(event),
        Replay { failed: true, .. } => Again::Failed(from, to),
        Replay { from: None, to: None, .. } => {
            bail!("say what: --failed, --event ID, or a time with --from and --to")
        }
        _ => Again::All(from, to),
    };
    let lined_up = webhooks::replay(cx, endpoint.account, endpoint.id, again).await;
    if let Err(error::Error::NotFound) = lined_up {
        bail!("there is no such endpoint, or no such event of its account and mode");
    }
    let lined_up = lined_up?;
    let words = format!("{lined_up} events will be told again");
    output::either(desk.json, &json!({ "events": lined_up }), &words);
    Ok(())
}
