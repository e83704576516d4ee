//! The `heliograph webhook` commands.

use crate::account_lookup;
use crate::commands::context::{CommandContext, or_not_found};
use crate::commands::running::require_service;
use crate::output::{self, ListRow, UsageError};
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use heliograph_domain::account::Mode;
use heliograph_domain::account_ref::AccountRef;
use heliograph_domain::delivery_error::AttemptOutcome;
use heliograph_domain::event::EventKind;
use heliograph_domain::id::{EndpointId, EventId};
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::{EventKinds, WebhookEndpoint};
use heliograph_domain::webhook_url::WebhookUrl;
use heliograph_domain::wording::{self, deliveries};
use heliograph_service::kernel::audit::Actor;
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::error;
use heliograph_service::webhooks::endpoints::{self, EndpointChange, NewEndpoint};
use heliograph_service::webhooks::replay::{self, ReplaySelection};
use heliograph_service::webhooks::test_delivery::TestDelivery;
use heliograph_store::webhooks::attempts::DeliveryAttempt;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// The time limit of `webhook test`; longer than the largest webhook timeout.
const TEST_TIMEOUT: Duration = Duration::from_secs(40);
/// The polling interval for the outcome of a test.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The subcommands of `heliograph webhook`.
#[derive(Subcommand, Debug)]
pub(crate) enum WebhookCommand {
    /// Add an endpoint; prints its id and signing secret as JSON
    #[command(
        after_help = "Example:\n  heliograph webhook add --account ann@example.com --url https://example.com/hook --live"
    )]
    Add(AddArgs),
    /// List the endpoints of an account and their status
    #[command(after_help = "Example:\n  heliograph webhook list --account ann@example.com")]
    List {
        /// ID of the account, or email address of the person who owns it
        #[arg(long, value_name = "ACCOUNT")]
        account: AccountRef,
    },
    /// Send a signed test event through the running service and print the response
    #[command(after_help = "Example:\n  heliograph webhook test 1 --event message.failed")]
    Test {
        /// Id of the endpoint, as shown by 'webhook list'
        endpoint: i32,
        /// Type of the test event
        #[arg(long, value_parser = parse_event_kind, default_value = "message.delivered")]
        event: EventKind,
    },
    /// Show recent failed delivery attempts and the retries that succeeded
    #[command(after_help = "Example:\n  heliograph webhook attempts 1 --limit 5")]
    Attempts {
        /// Id of the endpoint
        endpoint: i32,
        /// Number of attempts to show
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(i64).range(1..=1000))]
        limit: i64,
    },
    /// Replay events to an endpoint
    #[command(
        after_help = "Example:\n  heliograph webhook replay 1 --failed --from 2026-11-20T09:00:00Z"
    )]
    Replay(ReplayArgs),
    /// Rotate the signing secret and print the new one as JSON; the old one stays valid for 24
    /// hours
    #[command(after_help = "Example:\n  heliograph webhook rotate 1")]
    Rotate {
        /// Id of the endpoint
        endpoint: i32,
    },
    /// Enable an endpoint; events it missed can be replayed
    #[command(after_help = "Example:\n  heliograph webhook on 1")]
    On {
        /// Id of the endpoint
        endpoint: i32,
    },
    /// Disable an endpoint; events are kept and can be replayed later
    #[command(after_help = "Example:\n  heliograph webhook off 1")]
    Off {
        /// Id of the endpoint
        endpoint: i32,
    },
    /// Change the URL or the event types of an endpoint
    #[command(
        after_help = "Example:\n  heliograph webhook update 1 --url https://example.com/hook"
    )]
    Update(UpdateArgs),
    /// Delete an endpoint and its pending deliveries
    #[command(after_help = "Example:\n  heliograph webhook remove 1")]
    Remove {
        /// Id of the endpoint
        endpoint: i32,
    },
}

/// The arguments of `heliograph webhook add`.
#[derive(Args, Debug)]
pub(crate) struct AddArgs {
    /// ID of the account, or email address of the person who owns it
    #[arg(long, value_name = "ACCOUNT")]
    account: AccountRef,
    /// URL that receives the events
    #[arg(long)]
    url: String,
    /// Comma-separated event types to send [default: all]
    #[arg(long, value_name = "TYPES", value_delimiter = ',', value_parser = parse_event_kind)]
    events: Vec<EventKind>,
    /// Send events of live messages
    #[arg(long, conflicts_with = "test")]
    live: bool,
    /// Send events of test messages (default)
    #[arg(long)]
    test: bool,
}

/// The arguments of `heliograph webhook update`.
#[derive(Args, Debug)]
pub(crate) struct UpdateArgs {
    /// Id of the endpoint
    endpoint: i32,
    /// URL that receives the events, also the pending ones
    #[arg(long, required_unless_present = "events")]
    url: Option<String>,
    /// Comma-separated event types to send from now on
    #[arg(long, value_name = "TYPES", value_delimiter = ',', value_parser = parse_event_kind)]
    events: Vec<EventKind>,
}

/// The arguments of `heliograph webhook replay`.
#[derive(Args, Debug)]
pub(crate) struct ReplayArgs {
    /// Id of the endpoint
    endpoint: i32,
    /// Id of an event to replay (its webhook-id); repeat for more
    #[arg(long, value_name = "ID", conflicts_with_all = ["failed", "from", "to"])]
    event: Vec<EventId>,
    /// Replay only events that were never delivered to the endpoint
    #[arg(long)]
    failed: bool,
    /// Replay events from this time on, such as 2026-11-20T09:00:00Z [default: all retained events]
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// Replay events before this time [default: now]
    #[arg(long, value_name = "TIME")]
    to: Option<Timestamp>,
}

/// Parses the name of an event type.
pub(crate) fn parse_event_kind(text: &str) -> Result<EventKind, String> {
    let names: Vec<&str> = EventKind::ALL.into_iter().map(EventKind::name).collect();
    EventKind::from_name(text.trim())
        .ok_or_else(|| format!("possible values: {}", names.join(", ")))
}

/// Parses the URL in an option.
pub(crate) fn parse_url(option: &str, url: &str) -> anyhow::Result<WebhookUrl> {
    WebhookUrl::parse(url).map_err(|why| UsageError::error(format!("{option}: {why}")))
}

/// Returns the endpoint with this id, of any account, and the actor for the audit log.
async fn known(cx: &Context, number: i32) -> anyhow::Result<(WebhookEndpoint, Actor)> {
    let endpoint = found(endpoints::by_number(cx, EndpointId(number)).await, number)?;
    let by = Actor::operator(endpoint.account);
    Ok((endpoint, by))
}

/// Explains the error of an endpoint that cannot be registered or used.
pub(crate) fn or_invalid<T>(done: error::Result<T>) -> anyhow::Result<T> {
    done.map_err(|e| match e {
        error::Error::InvalidEndpoint(why) => anyhow::Error::msg(wording::endpoints::invalid(&why)),
        error::Error::LimitReached { limit, max } => {
            anyhow::Error::msg(wording::limits::limit_reached(limit, max))
        }
        e => e.into(),
    })
}

pub(crate) async fn run(
    command: &CommandContext,
    what: WebhookCommand,
) -> anyhow::Result<ExitCode> {
    match what {
        WebhookCommand::Add(what) => add(command, what).await?,
        WebhookCommand::List { account } => list(command, &account).await?,
        WebhookCommand::Test { endpoint, event } => return test(command, endpoint, event).await,
        WebhookCommand::Attempts { endpoint, limit } => attempts(command, endpoint, limit).await?,
        WebhookCommand::Replay(what) => replay(command, what).await?,
        WebhookCommand::Rotate { endpoint } => rotate(command, endpoint).await?,
        WebhookCommand::On { endpoint } => enable(command, endpoint).await?,
        WebhookCommand::Off { endpoint } => disable(command, endpoint).await?,
        WebhookCommand::Update(what) => update(command, what).await?,
        WebhookCommand::Remove { endpoint } => remove(command, endpoint).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn add(command: &CommandContext, what: AddArgs) -> anyhow::Result<()> {
    let cx = &command.context;
    let account = account_lookup::find(cx, &what.account).await?.id;
    parse_url("--url", &what.url)?;
    let mode = if what.live { Mode::Live } else { Mode::Test };
    let kinds =
        if what.events.is_empty() { EventKinds::ALL } else { what.events.into_iter().collect() };
    let wish = NewEndpoint { mode, url: what.url, kinds, listening_until: None };
    let (by, secret) = (Actor::operator(account), endpoints::secret(cx)?);
    let made = or_invalid(endpoints::add(cx, &by, wish, secret).await).context("--url")?;
    let (id, secret) = (made.id.0, made.secret.reveal());
    output::stdout(&json!({ "id": id, "secret": secret }).to_string());
    Ok(())
}

async fn update(command: &CommandContext, what: UpdateArgs) -> anyhow::Result<()> {
    let cx = &command.context;
    let (_, by) = known(cx, what.endpoint).await?;
    let kinds = Some(what.events).filter(|all| !all.is_empty());
    let kinds = kinds.map(|all| all.into_iter().collect());
    let change = EndpointChange { url: what.url, kinds };
    or_invalid(endpoints::update(cx, &by, EndpointId(what.endpoint), change).await)?;
    let (endpoint, _) = known(cx, what.endpoint).await?;
    let waiting = endpoints::waiting(cx, endpoint.account, endpoint.id).await?;
    let row = endpoint_row(&endpoint, waiting);
    output::print_result(command.json, &row.document, &row.cells.join("\t"));
    Ok(())
}

async fn list(command: &CommandContext, name: &AccountRef) -> anyhow::Result<()> {
    let cx = &command.context;
    let mut all = Vec::new();
    let account = account_lookup::find(cx, name).await?.id;
    for endpoint in endpoints::list(cx, account).await? {
        all.push(endpoint_row(&endpoint, endpoints::waiting(cx, account, endpoint.id).await?));
    }
    let header = ["ID", "MODE", "URL", "EVENTS", "STATUS", "PENDING"];
    output::print_list(command.json, &header, all);
    Ok(())
}

async fn rotate(command: &CommandContext, endpoint: i32) -> anyhow::Result<()> {
    let cx = &command.context;
    let ((_, by), secret) = (known(cx, endpoint).await?, endpoints::secret(cx)?);
    let until = endpoints::rotate(cx, &by, EndpointId(endpoint), &secret).await;
    let until = found(until, endpoint)?.to_string();
    let document = json!({ "id": endpoint, "secret": secret.reveal(), "oldSecretUntil": until });
    output::stdout(&document.to_string());
    Ok(())
}

async fn enable(command: &CommandContext, endpoint: i32) -> anyhow::Result<()> {
    let cx = &command.context;
    let (_, by) = known(cx, endpoint).await?;
    found(endpoints::switch_on(cx, &by, EndpointId(endpoint)).await, endpoint)?;
    output::stderr(&format!(
        "Enabled endpoint {endpoint}. Run 'heliograph webhook replay {endpoint} --failed' to send missed events."
    ));
    confirm(command, &json!({ "id": endpoint, "on": true }));
    Ok(())
}

async fn disable(command: &CommandContext, endpoint: i32) -> anyhow::Result<()> {
    let cx = &command.context;
    let (_, by) = known(cx, endpoint).await?;
    or_not_found(endpoints::switch_off(cx, &by, EndpointId(endpoint)).await, || {
        format!(
            "no enabled endpoint {endpoint}; run 'heliograph webhook list --account ACCOUNT' to see endpoints"
        )
    })?;
    output::stderr(&format!("Disabled endpoint {endpoint}"));
    confirm(command, &json!({ "id": endpoint, "on": false }));
    Ok(())
}

async fn remove(command: &CommandContext, endpoint: i32) -> anyhow::Result<()> {
    let cx = &command.context;
    let (_, by) = known(cx, endpoint).await?;
    found(endpoints::remove(cx, &by, EndpointId(endpoint)).await, endpoint)?;
    output::stderr(&format!("Deleted endpoint {endpoint}"));
    confirm(command, &json!({ "id": endpoint, "removed": true }));
    Ok(())
}

fn found<T>(done: error::Result<T>, endpoint: i32) -> anyhow::Result<T> {
    or_not_found(done, || {
        format!(
            "no endpoint {endpoint}; run 'heliograph webhook list --account ACCOUNT' to see endpoints"
        )
    })
}

/// Prints the JSON document of a command that has no other result, with `--json` only.
fn confirm(command: &CommandContext, done: &Value) {
    if command.json {
        output::stdout(&done.to_string());
    }
}

fn endpoint_row(e: &WebhookEndpoint, waiting: i64) -> ListRow {
    let text = |t: Option<Timestamp>| t.map(|t| t.to_string());
    let (failing, off) = (text(e.failing_since), text(e.off.map(|(since, _)| since)));
    let reason = e.off.map(|(_, reason)| wording::endpoints::disabled(reason));
    let document = json!({ "id": e.id.0, "mode": e.mode.name(), "url": e.url, "events": e.kinds.names(),
        "createdAt": e.created_at.to_string(), "failingSince": failing, "offSince": off,
        "offReason": reason, "waiting": waiting });
    let since = |at: Option<Timestamp>| at.map_or(String::new(), output::time);
    let state = match (reason, e.failing_since) {
        (Some(reason), _) => {
            format!("disabled since {}: {reason}", since(e.off.map(|(since, _)| since)))
        }
        (None, Some(at)) => format!("failing since {}", output::time(at)),
        (None, None) => "enabled".to_owned(),
    };
    let events = e.kinds.names().join(",");
    let (id, mode) = (e.id.to_string(), e.mode.to_string());
    ListRow { document, cells: vec![id, mode, e.url.clone(), events, state, waiting.to_string()] }
}

async fn test(command: &CommandContext, number: i32, event: EventKind) -> anyhow::Result<ExitCode> {
    let (cx, (endpoint, _)) = (&command.context, known(&command.context, number).await?);
    require_service(command).await?;
    let event =
        found(endpoints::send_test(cx, endpoint.account, endpoint.id, event).await, number)?;
    let started = tokio::time::Instant::now();
    loop {
        if let Some(trial) = TestDelivery::load(cx, &endpoint, event).await? {
            print_test(command, &trial);
            return Ok(if trial.outcome.is_success() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            });
        }
        if started.elapsed() > TEST_TIMEOUT {
            bail!(
                "the test event was not sent within {} s; check that 'heliograph serve' is running",
                TEST_TIMEOUT.as_secs()
            );
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Prints the outcome of a test, with advice if it failed.
fn print_test(command: &CommandContext, trial: &TestDelivery) {
    let TestDelivery { event, outcome, took, detail, body, .. } = trial;
    let detail = failed(*outcome, detail.as_deref());
    let advice = deliveries::advice(*outcome);
    let document = json!({ "event": event.to_string(), "success": outcome.is_success(),
        "status": outcome.status(), "milliseconds": took, "detail": detail, "body": body,
        "fix": advice.map(|a| a.fix) });
    let outcome = detail.unwrap_or_else(|| succeeded(*outcome));
    // Quoted, so that the response cannot inject terminal escape sequences.
    let response = body.as_deref().map_or(String::new(), |b| format!("\n{}", Value::from(b)));
    let fix = advice.map_or(String::new(), |a| format!("\n{}. {}", a.problem, a.fix));
    output::print_result(
        command.json,
        &document,
        &format!("{outcome} in {took} ms{response}{fix}"),
    );
}

async fn attempts(command: &CommandContext, number: i32, limit: i64) -> anyhow::Result<()> {
    let (cx, (endpoint, _)) = (&command.context, known(&command.context, number).await?);
    let all = endpoints::attempts(cx, endpoint.account, endpoint.id, limit).await?;
    let header = ["TIME", "EVENT", "RESULT", "DURATION", "RESPONSE"];
    output::print_list(command.json, &header, all.into_iter().map(attempt_row).collect());
    Ok(())
}

/// Describes an attempt that failed.
fn failed(outcome: AttemptOutcome, detail: Option<&str>) -> Option<String> {
    let text = || deliveries::outcome(outcome, detail.unwrap_or_default());
    (!outcome.is_success()).then(text)
}

/// Describes an attempt that succeeded.
fn succeeded(outcome: AttemptOutcome) -> String {
    format!("HTTP {}", outcome.status().unwrap_or_default())
}

fn attempt_row(a: DeliveryAttempt) -> ListRow {
    let (event, at) = (a.event.to_string(), a.at.to_string());
    let detail = failed(a.outcome, a.detail.as_deref());
    let document = json!({ "event": event, "at": at, "status": a.outcome.status(),
        "milliseconds": a.duration, "detail": detail, "body": a.body });
    let text = detail.unwrap_or_else(|| succeeded(a.outcome));
    // Quoted, so that the response cannot inject terminal escape sequences.
    let body = a.body.map_or(String::new(), |b| Value::String(b).to_string());
    ListRow {
        document,
        cells: vec![output::time(a.at), event, text, format!("{} ms", a.duration), body],
    }
}

async fn replay(command: &CommandContext, what: ReplayArgs) -> anyhow::Result<()> {
    let (cx, (endpoint, by)) = (&command.context, known(&command.context, what.endpoint).await?);
    let (from, to) = (what.from.unwrap_or(Timestamp(0)), what.to.unwrap_or(cx.db.now()));
    if from >= to && what.to.is_none() {
        return Err(UsageError::error(format!("--from {from} is in the future")));
    }
    if from >= to {
        return Err(UsageError::error(format!("--from {from} must be before --to {to}")));
    }
    let again = match what {
        ReplayArgs { event, .. } if !event.is_empty() => ReplaySelection::Events(event),
        ReplayArgs { failed: true, .. } => ReplaySelection::Failed(from, to),
        ReplayArgs { from: None, to: None, .. } => {
            let text = "select events with --failed, --event ID, or --from and --to";
            return Err(UsageError::error(text));
        }
        _ => ReplaySelection::All(from, to),
    };
    let queued = replay::replay(cx, &by, endpoint.id, again).await;
    if let Err(error::Error::NotFound) = queued {
        bail!("no such event for the account and mode of this endpoint");
    }
    let queued = or_invalid(queued)?;
    let text = format!("Events queued for replay: {queued}");
    output::print_result(command.json, &json!({ "events": queued }), &text);
    Ok(())
}
