//! The `heliograph listen` command: streams the webhook events of an account to this machine.
//!
//! The command registers a temporary webhook endpoint on a local port, verifies the signature of
//! each event, prints it, and optionally forwards it to a local URL.

use crate::commands::context::CommandContext;
use crate::commands::running::require_service;
use crate::commands::webhook;
use crate::config::Config;
use crate::{account_lookup, data_dir, output, signals};
use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use heliograph_domain::account::Mode;
use heliograph_domain::account_ref::AccountRef;
use heliograph_domain::delivery_error::DeliveryError;
use heliograph_domain::event::EventKind;
use heliograph_domain::id::AccountId;
use heliograph_domain::webhook::{EventKinds, SECRET_BYTES, WebhookEndpoint, WebhookSecret};
use heliograph_domain::wording::deliveries;
use heliograph_engine::Forwarder;
use heliograph_service::kernel::audit::Actor;
use heliograph_service::kernel::context::Context;
use heliograph_service::webhooks::endpoints::{self, NewEndpoint};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::convert::Infallible;
use std::io::IsTerminal;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The lifetime of the temporary endpoint after its last extension, in case the command is killed.
const ENDPOINT_TTL: Duration = Duration::from_secs(30);
/// The interval at which the lifetime of the endpoint is extended.
const EXTEND_EVERY: Duration = Duration::from_secs(10);
/// The largest accepted request body, in bytes; larger than any webhook.
const MAX_BODY: usize = 1 << 20;

/// Stream an account's webhook events to this terminal or forward them to a local URL
#[derive(Args, Debug)]
#[command(after_help = "Example:
  heliograph listen --forward http://127.0.0.1:3000/webhooks

Needs a running service on this machine. The signature of each event is verified. The signing secret of
an account and mode stays the same on a machine. With --json, each event is printed as one line, the body
of its webhook.")]
pub(crate) struct ListenArgs {
    /// ID of the account, or email address of the person who owns it [default: the only account]
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<AccountRef>,
    /// Comma-separated event types [default: all]
    #[arg(long, value_name = "TYPES", value_delimiter = ',', value_parser = webhook::parse_event_kind)]
    events: Vec<EventKind>,
    /// Listen to events of live messages
    #[arg(long, conflicts_with = "test")]
    live: bool,
    /// Listen to events of test messages (default)
    #[arg(long)]
    test: bool,
    /// Forward each event to this URL and return its response status
    #[arg(long, value_name = "URL")]
    forward: Option<String>,
    /// Print the data of each event below its line
    #[arg(long)]
    verbose: bool,
}

/// The state shared by all requests.
struct Listener {
    context: Context,
    endpoint: WebhookEndpoint,
    forwarder: Option<Forwarder>,
    json: bool,
    verbose: bool,
    colour: bool,
}

pub(crate) async fn run(command: &CommandContext, what: ListenArgs) -> anyhow::Result<ExitCode> {
    let cx = &command.context;
    let account = account_lookup::find_or_only(cx, what.account.as_ref()).await?;
    let target =
        what.forward.as_deref().map(|url| webhook::parse_url("--forward", url)).transpose()?;
    require_service(command).await?;
    let mode = if what.live { Mode::Live } else { Mode::Test };
    let secret = signing_secret(&command.config, account.id, mode)?;
    let by = Actor::operator(account.id);
    remove_leftovers(cx, &by, &secret).await?;
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let url = format!("http://{}/", socket.local_addr()?);
    let kinds =
        if what.events.is_empty() { EventKinds::ALL } else { what.events.into_iter().collect() };
    let listening_until = Some(cx.db.now().after(ENDPOINT_TTL));
    let wish = NewEndpoint { mode, url, kinds, listening_until };
    let endpoint = webhook::or_invalid(endpoints::add(cx, &by, wish, secret).await)?;
    let (id, secret) = (endpoint.id, endpoint.secret.reveal());
    output::stderr(&format!(
        "Listening for events of {mode} messages of account {} ({}) (press Ctrl-C to stop)\nSigning secret: {secret}",
        account.id, account.name
    ));
    let listener = Listener {
        context: cx.clone(),
        forwarder: target.map(|t| Forwarder::new(cx.names.clone(), account.id, t)),
        endpoint,
        json: command.json,
        verbose: what.verbose,
        colour: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    };
    let ended = listen(socket, Arc::new(listener)).await;
    endpoints::remove(cx, &by, id).await?;
    ended.map(|()| ExitCode::SUCCESS)
}

/// Returns the signing secret of an account and mode on this machine. It is derived, so that a
/// program under development is configured once, and nothing has to be stored.
fn signing_secret(
    config: &Config,
    account: AccountId,
    mode: Mode,
) -> anyhow::Result<WebhookSecret> {
    let machine = data_dir::node_identity(data_dir::create(config)?)?;
    let purpose = format!("listen/{machine}/{account}/{mode}");
    let mut bytes = [0; SECRET_BYTES];
    bytes.copy_from_slice(&data_dir::sealing_key(config)?.derive(&purpose)[..SECRET_BYTES]);
    Ok(WebhookSecret::from_random(&bytes))
}

/// Removes the endpoints that killed runs of this command left on this machine. The secret shows
/// that they are of this machine, and a refused connection that their process is gone.
async fn remove_leftovers(cx: &Context, by: &Actor, secret: &WebhookSecret) -> anyhow::Result<()> {
    for left in endpoints::list(cx, by.account).await? {
        let address = left.url.trim_start_matches("http://").trim_end_matches('/');
        if left.local && left.secret == *secret && TcpStream::connect(address).await.is_err() {
            endpoints::remove(cx, by, left.id).await?;
        }
    }
    Ok(())
}

async fn listen(socket: TcpListener, listener: Arc<Listener>) -> anyhow::Result<()> {
    let mut renew = tokio::time::interval(EXTEND_EVERY);
    let mut connections = JoinSet::new();
    let signal = signals::wait_for_shutdown();
    tokio::pin!(signal);
    loop {
        tokio::select! {
            signal = &mut signal => return signal,
            accepted = socket.accept() => {
                let (stream, _) = accepted?;
                let listener = listener.clone();
                connections.spawn(async move {
                    let answer = service_fn(|request| answer(&listener, request));
                    let http = hyper::server::conn::http1::Builder::new();
                    // A broken connection is retried by the sender.
                    drop(http.serve_connection(TokioIo::new(stream), answer).await);
                });
            }
            Some(_) = connections.join_next() => {}
            _ = renew.tick() => {
                let until = listener.context.db.now().after(ENDPOINT_TTL);
                let (account, id) = (listener.endpoint.account, listener.endpoint.id);
                endpoints::extend(&listener.context, account, id, until).await.context("the temporary endpoint was removed")?;
            }
        }
    }
}

async fn answer(
    listener: &Listener,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, MAX_BODY).collect().await.map(|b| b.to_bytes());
    let status = match body {
        Ok(body) if head.method == Method::POST => receive(listener, &head.headers, body).await,
        _ => 400,
    };
    let mut response = Response::new(Full::default());
    *response.status_mut() = status.try_into().unwrap_or(hyper::StatusCode::BAD_GATEWAY);
    Ok(response)
}

/// Verifies, forwards and prints one event; returns the HTTP status to answer with.
async fn receive(listener: &Listener, headers: &HeaderMap, body: Bytes) -> u16 {
    let header = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let (id, signature) = (header("webhook-id"), header("webhook-signature"));
    let timestamp = header("webhook-timestamp").parse().unwrap_or(0);
    if !listener.endpoint.secret.verify(id, timestamp, &body, signature) {
        output::stderr("Rejected a request with an invalid signature");
        return 400;
    }
    let started = Instant::now();
    let forwarded = match &listener.forwarder {
        Some(forwarder) => Some(forwarder.forward(headers, body.clone()).await),
        None => None,
    };
    print_event(listener, id, &body, forwarded.as_ref().map(|f| (f, started.elapsed())));
    match forwarded {
        None => 204,
        Some(Ok(status)) => status,
        Some(Err(_)) => 502,
    }
}

fn print_event(
    listener: &Listener,
    id: &str,
    body: &[u8],
    forwarded: Option<(&Result<u16, DeliveryError>, Duration)>,
) {
    let event: Value = serde_json::from_slice(body).unwrap_or_default();
    if listener.json {
        return output::stdout(&event.to_string());
    }
    let data = event.get("data").unwrap_or(&Value::Null);
    let text = |value: &Value, field: &str| {
        // Escaped, so that no sender injects terminal escape sequences.
        let text = value.get(field).and_then(Value::as_str).unwrap_or_default();
        text.escape_debug().to_string()
    };
    let paint = |code: &str, text: &str| match listener.colour {
        true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        false => text.to_owned(),
    };
    let kind = text(&event, "type");
    let colour = match kind.as_str() {
        "message.delivered" => "1;32",
        "message.failed" => "1;31",
        "message.received" => "1;36",
        _ => "1;33",
    };
    let at = event.get("timestamp").and_then(Value::as_str).and_then(|at| at.parse().ok());
    let at = paint("2", &at.map_or(String::new(), output::time));
    let between = format!("{} → {}", text(data, "originator"), text(data, "recipient"));
    let ids = paint("2", &format!("{}  event {}", text(data, "id"), id.escape_debug()));
    let outcome = forwarded.map_or(String::new(), |f| format!("  {}", outcome(f, paint)));
    let kind = paint(colour, &format!("{kind:17}"));
    output::stdout(&format!("{at}  {kind}  {between}  {ids}{outcome}"));
    if listener.verbose {
        let data = serde_json::to_string_pretty(data).unwrap_or_default();
        data.lines().for_each(|line| output::stdout(&format!("    {line}")));
    }
}

/// Describes the result of forwarding an event.
fn outcome(
    (result, took): (&Result<u16, DeliveryError>, Duration),
    paint: impl Fn(&str, &str) -> String,
) -> String {
    match result {
        Ok(status) => {
            let colour = if (200..300).contains(status) { "32" } else { "31" };
            paint(colour, &format!("forwarded: HTTP {status} in {} ms", took.as_millis()))
        }
        Err(why) => {
            let why = deliveries::error(why.kind, &why.detail);
            paint("31", &format!("forwarding failed: {why}"))
        }
    }
}
