//! The `heliograph listen` command: streams the webhook events of an account to this machine.
//!
//! The command registers a temporary webhook endpoint on a local port, verifies the signature of
//! each event, prints it, and optionally forwards it to a local URL.

use crate::commands::context::CommandContext;
use crate::commands::webhook;
use crate::{output, signals};
use anyhow::{Context as _, bail};
use bytes::Bytes;
use clap::Args;
use heliograph_domain::account::Mode;
use heliograph_domain::delivery_error::DeliveryError;
use heliograph_domain::event::EventKind;
use heliograph_domain::webhook::{EventKinds, WebhookEndpoint};
use heliograph_domain::webhook_url::WebhookUrl;
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
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The lifetime of the temporary endpoint after its last extension, in case the command is killed.
const ENDPOINT_TTL: Duration = Duration::from_secs(60);
/// The interval at which the lifetime of the endpoint is extended.
const EXTEND_EVERY: Duration = Duration::from_secs(20);
/// The largest accepted request body, in bytes; larger than any webhook.
const MAX_BODY: usize = 1 << 20;

/// Stream an account's webhook events to this terminal or forward them to a local URL
#[derive(Args, Debug)]
#[command(after_help = "Example:
  heliograph listen --forward http://127.0.0.1:3000/webhooks

Needs a running service. The signature of each event is verified. With --json, each event is printed
as one line, the body of its webhook.")]
pub(crate) struct ListenArgs {
    /// Email address of the account [default: the only account]
    #[arg(long, value_name = "EMAIL")]
    account: Option<String>,
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
}

/// The state shared by all requests.
struct Listener {
    context: Context,
    endpoint: WebhookEndpoint,
    forwarder: Option<Forwarder>,
    json: bool,
    colour: bool,
}

pub(crate) async fn run(command: &CommandContext, what: ListenArgs) -> anyhow::Result<ExitCode> {
    let cx = &command.context;
    let email = match &what.account {
        Some(email) => email.clone(),
        None => only_account(cx).await?,
    };
    let account = webhook::account_id(cx, &email).await?;
    let target = what.forward.as_deref().map(WebhookUrl::parse).transpose().context("--forward")?;
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let url = format!("http://{}/", socket.local_addr()?);
    let (mode, mode_name) = if what.live { (Mode::Live, "live") } else { (Mode::Test, "test") };
    let kinds =
        if what.events.is_empty() { EventKinds::ALL } else { what.events.into_iter().collect() };
    let listening_until = Some(cx.db.now().after(ENDPOINT_TTL));
    let (by, wish) = (Actor::operator(account), NewEndpoint { mode, url, kinds, listening_until });
    let added = endpoints::add(cx, &by, wish, endpoints::secret(cx)?).await;
    let endpoint = webhook::or_invalid(added)?;
    let (id, secret) = (endpoint.id, endpoint.secret.reveal());
    output::stderr(&format!(
        "Listening for events of {mode_name} messages of {email} (press Ctrl-C to stop)\nSigning secret: {secret}"
    ));
    let listener = Listener {
        context: cx.clone(),
        forwarder: target.map(|t| Forwarder::new(cx.names.clone(), account, t)),
        endpoint,
        json: command.json,
        colour: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    };
    let ended = listen(socket, Arc::new(listener)).await;
    endpoints::remove(cx, &by, id).await?;
    ended.map(|()| ExitCode::SUCCESS)
}

async fn only_account(cx: &Context) -> anyhow::Result<String> {
    let all = heliograph_service::identity::accounts::list(cx).await?;
    match all.as_slice() {
        [one] => Ok(one.name.clone()),
        [] => bail!(
            "there are no accounts; start 'heliograph serve' or run 'heliograph account create'"
        ),
        _ => bail!("there are several accounts; select one with --account EMAIL"),
    }
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
    let text = |field: &str| event.get(field).and_then(Value::as_str).unwrap_or_default();
    let kind = text("type");
    let paint = |code: &str, text: &str| match listener.colour {
        true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        false => text.to_owned(),
    };
    let colour = match kind {
        "message.delivered" => "1;32",
        "message.failed" => "1;31",
        "message.received" => "1;36",
        _ => "1;33",
    };
    let outcome = match forwarded {
        None => String::new(),
        Some((Ok(status), took)) => {
            let colour = if (200..300).contains(status) { "32" } else { "31" };
            format!(
                "  {}",
                paint(colour, &format!("forwarded: HTTP {status} in {} ms", took.as_millis()))
            )
        }
        Some((Err(why), _)) => {
            let why = deliveries::error(why.kind, &why.detail);
            format!("  {}", paint("31", &format!("forwarding failed: {why}")))
        }
    };
    let (at, kind, id) = (paint("2", text("timestamp")), paint(colour, kind), paint("2", id));
    output::stdout(&format!("{at}  {kind}  {id}  verified{outcome}"));
    let data = event.get("data").unwrap_or(&Value::Null);
    let data = serde_json::to_string_pretty(data).unwrap_or_default();
    output::stdout(&data.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n"));
}
