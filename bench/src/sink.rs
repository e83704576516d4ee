//! A webhook receiver that counts and measures the latency from an event to its webhook.

use crate::output;
use bytes::BytesMut;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const MAX_HEADERS: usize = 32;
const MAX_BYTES: usize = 1 << 20;

/// Run a webhook receiver. The prefix of the path selects the behaviour: `/ok` responds at once,
/// `/slow` after `--slow-ms`, `/dead` never, `/error` with 500. `GET /stats` returns counts by
/// path, `POST /reset` resets them.
#[derive(clap::Args, Debug)]
pub(crate) struct SinkArgs {
    /// Port on 127.0.0.1
    #[arg(long, default_value_t = 8090)]
    port: u16,
    /// Delay of `/slow` in milliseconds
    #[arg(long, default_value_t = 2_000)]
    slow_ms: u64,
}

/// The webhooks received on one path.
struct PathStats {
    posts: u64,
    ids: HashSet<String>,
    /// The latency from the event to its webhook, in milliseconds.
    lag: Histogram<u64>,
    last: Duration,
}

/// The statistics of one path in `/stats`.
#[derive(Serialize)]
struct PathReport {
    posts: u64,
    unique: usize,
    lag_p50_ms: u64,
    lag_p99_ms: u64,
    lag_max_ms: u64,
    /// The time of the last webhook, in seconds since 1970.
    last_s: f64,
}

type Counts = Arc<Mutex<BTreeMap<String, PathStats>>>;

/// Runs `bench sink`.
pub(crate) fn main(options: SinkArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
        output::stderr(&format!("sink on {}", listener.local_addr()?));
        let slow = Duration::from_millis(options.slow_ms);
        let counts = Counts::default();
        let mut connections = tokio::task::JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let (stream, _) = accepted?;
                    connections.spawn(serve(stream, counts.clone(), slow));
                }
                Some(_) = connections.join_next() => {}
            }
        }
    })
}

async fn serve(mut stream: TcpStream, counts: Counts, slow: Duration) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let empty = Histogram::new_with_bounds(1, 86_400_000, 3)?;
    let mut inbound = BytesMut::with_capacity(16 << 10);
    loop {
        while let Some((path, id, length, head)) = parse(&inbound)? {
            while inbound.len() < head + length {
                if stream.read_buf(&mut inbound).await? == 0 {
                    return Ok(());
                }
            }
            let request = inbound.split_to(head + length);
            let body = request.get(head..).unwrap_or_default();
            let answer = match path.as_str() {
                "/stats" => report(&counts),
                "/reset" => {
                    lock(&counts).clear();
                    "{}".to_owned()
                }
                _ => {
                    record((&counts, &empty), path.clone(), id, body);
                    if path.starts_with("/dead") {
                        std::future::pending::<()>().await;
                    }
                    if path.starts_with("/slow") {
                        tokio::time::sleep(slow).await;
                    }
                    String::new()
                }
            };
            let status =
                if path.starts_with("/error") { "500 Internal Server Error" } else { "200 OK" };
            let length = answer.len();
            let text = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{answer}");
            stream.write_all(text.as_bytes()).await?;
        }
        if inbound.len() > MAX_BYTES || stream.read_buf(&mut inbound).await? == 0 {
            return Ok(());
        }
    }
}

type Parsed = (String, Option<String>, usize, usize);

/// Returns path, webhook-id, body length and head length; `None` until the head is complete.
fn parse(bytes: &[u8]) -> anyhow::Result<Option<Parsed>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(head) = request.parse(bytes)? else { return Ok(None) };
    let header = |name: &str| {
        let found = request.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok()
    };
    let length = header("content-length").and_then(|v| v.parse().ok()).unwrap_or(0);
    let id = header("webhook-id").map(str::to_owned);
    Ok(Some((request.path.unwrap_or("/").to_owned(), id, length, head)))
}

fn lock(counts: &Counts) -> std::sync::MutexGuard<'_, BTreeMap<String, PathStats>> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now() -> Duration {
    #[expect(clippy::disallowed_methods, reason = "events carry the wall clock's time")]
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn record(
    (counts, empty): (&Counts, &Histogram<u64>),
    path: String,
    id: Option<String>,
    body: &[u8],
) {
    let now = now();
    let mut counts = lock(counts);
    let count = counts.entry(path).or_insert_with(|| PathStats {
        posts: 0,
        ids: HashSet::new(),
        lag: empty.clone(),
        last: now,
    });
    count.posts += 1;
    count.last = now;
    count.ids.extend(id);
    if let Some(at) = event_time(body) {
        count
            .lag
            .saturating_record(now.saturating_sub(at).as_millis().try_into().unwrap_or(u64::MAX));
    }
}

/// Extracts the time of an event from the `timestamp` field of the body.
fn event_time(body: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(body).ok()?;
    let (_, rest) = text.split_once("\"timestamp\":\"")?;
    let (at, _) = rest.split_once('"')?;
    let at: jiff::Timestamp = at.parse().ok()?;
    Some(Duration::from_millis(at.as_millisecond().try_into().ok()?))
}

fn report(counts: &Counts) -> String {
    let path_report = |c: &PathStats| PathReport {
        posts: c.posts,
        unique: c.ids.len(),
        lag_p50_ms: c.lag.value_at_quantile(0.5),
        lag_p99_ms: c.lag.value_at_quantile(0.99),
        lag_max_ms: c.lag.max(),
        last_s: c.last.as_secs_f64(),
    };
    let all: BTreeMap<String, PathReport> =
        lock(counts).iter().map(|(p, c)| (p.clone(), path_report(c))).collect();
    serde_json::to_string(&all).unwrap_or_default()
}
