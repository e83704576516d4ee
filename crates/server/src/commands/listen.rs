//! `heliograph listen`: events of an account, shown on this machine as they happen.

use crate::commands::arguments::Desk;
use crate::commands::webhook;
use crate::{output, serve};
use anyhow::{Context as _, bail};
use bytes::Bytes;
use clap::Args;
use heliograph_domain::account::Mode;
use heliograph_domain::event::Kind;
use heliograph_domain::target::Target;
use heliograph_domain::webhook::{Endpoint, Kinds};
use heliograph_engine::Forwarder;
use heliograph_service::audit::Actor;
use heliograph_service::context::Context;
use heliograph_service::webhooks::{self, Wish};
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

/// How long the endpoint outlives a command that ends without a word.
const LIFE: Duration = Duration::from_secs(60);
/// How often its life is renewed.
const RENEW: Duration = Duration::from_secs(20);
/// Larger than any webhook.
const MAX_BODY: usize = 1 << 20;

/// Show an account's events on this machine, verified, as they happen; beside a running service
#[derive(Args, Debug)]
#[command(after_help = "Example:
  heliograph listen --forward http://127.0.0.1:3000/webhooks

With --json, each event is one line: the body of its webhook.")]
pub(crate) struct Listen {
    /// Whose: the account's email address; without this, the only account there is
    #[arg(long, value_name = "EMAIL")]
    account: Option<String>,
    /// Which kinds, with commas between; everything when nothing is said
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = webhook::kind)]
    events: Vec<Kind>,
    /// Events of real messages
    #[arg(long, conflicts_with = "test")]
    live: bool,
    /// Events of test messages (what happens when nothing is said)
    #[arg(long)]
    test: bool,
    /// Send each event on to this URL, and answer as it does
    #[arg(long, value_name = "URL")]
    forward: Option<String>,
}

/// What each request is handled with.
struct Ear {
    context: Context,
    endpoint: Endpoint,
    forwarder: Option<Forwarder>,
    json: bool,
    colour: bool,
}

pub(crate) async fn run(desk: &Desk, what: Listen) -> anyhow::Result<ExitCode> {
    let cx = &desk.context;
    let email = match &what.account {
        Some(email) => email.clone(),
        None => only_account(cx).await?,
    };
    let account = webhook::owner(cx, &email).await?;
    let target = what.forward.as_deref().map(Target::parse).transpose().context("--forward")?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let (mode, live) = if what.live { (Mode::Live, "real") } else { (Mode::Test, "test") };
    let kinds = if what.events.is_empty() { Kinds::ALL } else { what.events.into_iter().collect() };
    let listening_until = Some(cx.db.now().after(LIFE));
    let (by, wish) = (Actor::operator(account), Wish { mode, url, kinds, listening_until });
    let endpoint = webhooks::add(cx, &by, wish, webhooks::secret(cx)?).await?;
    let (id, secret) = (endpoint.id, endpoint.secret.reveal());
    output::talk(&format!(
        "listening to {live} messages of {email}; Ctrl-C ends it\nsigned with {secret}"
    ));
    let ear = Ear {
        context: cx.clone(),
        forwarder: target.map(|t| Forwarder::new(cx.resolver.clone(), t)),
        endpoint,
        json: desk.json,
        colour: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    };
    let ended = listen(listener, Arc::new(ear)).await;
    webhooks::remove(cx, &by, id).await?;
    ended.map(|()| ExitCode::SUCCESS)
}

async fn only_account(cx: &Context) -> anyhow::Result<String> {
    let all = heliograph_service::accounts::list(cx).await?;
    match all.as_slice() {
        [one] => Ok(one.name.clone()),
        [] => bail!(
            "there is no account yet: start 'heliograph serve', or see 'heliograph account create --help'"
        ),
        _ => bail!("there are several accounts: say which with --account EMAIL"),
    }
}

async fn listen(listener: TcpListener, ear: Arc<Ear>) -> anyhow::Result<()> {
    let mut renew = tokio::time::interval(RENEW);
    let mut connections = JoinSet::new();
    let signal = serve::signal();
    tokio::pin!(signal);
    loop {
        tokio::select! {
            signal = &mut signal => return signal,
            taken = listener.accept() => {
                let (stream, _) = taken?;
                let ear = ear.clone();
                connections.spawn(async move {
                    let answer = service_fn(|request| answer(&ear, request));
                    let http = hyper::server::conn::http1::Builder::new();
                    // A connection that breaks off is the other side's matter.
                    drop(http.serve_connection(TokioIo::new(stream), answer).await);
                });
            }
            Some(_) = connections.join_next() => {}
            _ = renew.tick() => {
                let until = ear.context.db.now().after(LIFE);
                let (account, id) = (ear.endpoint.account, ear.endpoint.id);
                webhooks::keep(&ear.context, account, id, until).await.context("the endpoint was removed")?;
            }
        }
    }
}

async fn answer(
    ear: &Ear,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, MAX_BODY).collect().await.map(|b| b.to_bytes());
    let status = match body {
        Ok(body) if head.method == Method::POST => hear(ear, &head.headers, body).await,
        _ => 400,
    };
    let mut response = Response::new(Full::default());
    *response.status_mut() = status.try_into().unwrap_or(hyper::StatusCode::BAD_GATEWAY);
    Ok(response)
}

/// Shows one event, if it is one; the status to answer.
async fn hear(ear: &Ear, headers: &HeaderMap, body: Bytes) -> u16 {
    let header = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let (id, signature) = (header("webhook-id"), header("webhook-signature"));
    let timestamp = header("webhook-timestamp").parse().unwrap_or(0);
    if !ear.endpoint.secret.verify(id, timestamp, &body, signature) {
        output::talk("something came that is not signed with this secret; it was refused");
        return 400;
    }
    let begun = Instant::now();
    let forwarded = match &ear.forwarder {
        Some(forwarder) => Some(forwarder.forward(headers, body.clone()).await),
        None => None,
    };
    show(ear, id, &body, forwarded.as_ref().map(|f| (f, begun.elapsed())));
    match forwarded {
        None => 204,
        Some(Ok(status)) => status,
        Some(Err(_)) => 502,
    }
}

fn show(ear: &Ear, id: &str, body: &[u8], forwarded: Option<(&Result<u16, String>, Duration)>) {
    let event: Value = serde_json::from_slice(body).unwrap_or_default();
    if ear.json {
        return output::result(&event.to_string());
    }
    let text = |field: &str| event.get(field).and_then(Value::as_str).unwrap_or_default();
    let kind = text("type");
    let paint = |code: &str, text: &str| match ear.colour {
        true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        false => text.to_owned(),
    };
    let colour = match kind {
        "message.delivered" => "1;32",
        "message.failed" => "1;31",
        "message.received" => "1;36",
        _ => "1;33",
    };
    let went = match forwarded {
        None => String::new(),
        Some((Ok(status), took)) => {
            let colour = if (200..300).contains(status) { "32" } else { "31" };
            format!(
                "  {}",
                paint(colour, &format!("forwarded: {status} in {} ms", took.as_millis()))
            )
        }
        Some((Err(why), _)) => format!("  {}", paint("31", &format!("not forwarded: {why}"))),
    };
    let (at, kind, id) = (paint("2", text("timestamp")), paint(colour, kind), paint("2", id));
    output::result(&format!("{at}  {kind}  {id}  verified{went}"));
    let data = event.get("data").unwrap_or(&Value::Null);
    let data = serde_json::to_string_pretty(data).unwrap_or_default();
    output::result(&data.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n"));
}
