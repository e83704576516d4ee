//! A load generator for HTTP/1.1: closed loop, or open loop at a fixed rate.

use crate::output;
use crate::template::{Recipients, Template};
use anyhow::{Context, bail};
use bytes::{Buf, BytesMut};
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The time limit of a request; after it, the connection is closed.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The number of consecutive failures after which a connection is not reopened.
const MAX_FAILURES: u32 = 200;

/// The arguments of `bench load`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct LoadArgs {
    /// URL to request, http://127.0.0.1:PORT/PATH
    #[arg(long)]
    url: String,
    /// Body of a POST request, in which {n} is a sequence number and {to} a recipient [default:
    /// GET]
    #[arg(long)]
    body: Option<String>,
    /// Header to send, such as "Name: value"; repeat for more
    #[arg(long)]
    header: Vec<String>,
    /// Number of connections, each with one request at a time
    #[arg(short, long, default_value_t = 64)]
    connections: usize,
    /// Number of requests after which to stop
    #[arg(long, default_value_t = 1_000_000)]
    count: u64,
    /// Seconds after which to stop
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// Requests per second, with latency from the intended time; 0 for a closed loop
    #[arg(long, default_value_t = 0.0)]
    rate: f64,
    /// Order of the recipients
    #[arg(long, value_enum, default_value_t = Recipients::Sequential)]
    recipients: Recipients,
    /// First sequence number
    #[arg(long, default_value_t = 0)]
    first: u64,
}

/// The parsed arguments and the shared state of a run.
struct Plan {
    options: LoadArgs,
    address: String,
    head: String,
    body: Option<Template>,
    next: AtomicU64,
    started: Instant,
    end: Instant,
}

/// The measurements of one connection, or of all.
struct LoadStats {
    micros: Histogram<u64>,
    status: BTreeMap<u16, u64>,
    connected: u64,
    failures: u64,
    last_failure: Option<String>,
}

impl LoadStats {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            micros: Histogram::new_with_bounds(1, 600_000_000, 3)?,
            status: BTreeMap::new(),
            connected: 0,
            failures: 0,
            last_failure: None,
        })
    }

    fn add(&mut self, other: Self) -> anyhow::Result<()> {
        self.micros.add(&other.micros)?;
        for (status, n) in other.status {
            *self.status.entry(status).or_default() += n;
        }
        self.connected += other.connected;
        self.failures += other.failures;
        self.last_failure = self.last_failure.take().or(other.last_failure);
        Ok(())
    }

    fn report(&self, took: Duration) -> Value {
        let good: u64 = self.status.range(200..300).map(|(_, n)| n).sum();
        let millis = |q: f64| self.micros.value_at_quantile(q) as f64 / 1000.0;
        json!({
            "good": good,
            "seconds": took.as_secs_f64(),
            "per_s": good as f64 / took.as_secs_f64(),
            "p50_ms": millis(0.5),
            "p99_ms": millis(0.99),
            "p999_ms": millis(0.999),
            "max_ms": self.micros.max() as f64 / 1000.0,
            "status": self.status,
            "connected": self.connected,
            "failures": self.failures,
            "last_failure": self.last_failure,
        })
    }
}

/// Runs `bench load`.
pub(crate) fn main(options: LoadArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let plan = Arc::new(plan(options)?);
        let mut connections = JoinSet::new();
        for _ in 0..plan.options.connections {
            let plan = plan.clone();
            let mut seen = LoadStats::new()?;
            connections.spawn(async move {
                connection(&plan, &mut seen).await;
                seen
            });
        }
        let mut all = LoadStats::new()?;
        while let Some(seen) = connections.join_next().await {
            all.add(seen?)?;
        }
        output::stdout(&all.report(plan.started.elapsed()));
        Ok(())
    })
}

fn plan(options: LoadArgs) -> anyhow::Result<Plan> {
    let rest = options.url.strip_prefix("http://").context("the URL must begin with http://")?;
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    if !address.starts_with("127.0.0.1:") {
        bail!("{address} is not on 127.0.0.1; this tool only loads the local machine");
    }
    let method = if options.body.is_some() { "POST" } else { "GET" };
    let mut head = format!("{method} /{path} HTTP/1.1\r\nHost: {address}\r\n");
    for header in &options.header {
        head.push_str(header);
        head.push_str("\r\n");
    }
    if options.body.is_some() {
        head.push_str("Content-Type: application/json\r\n");
    }
    let started = Instant::now();
    Ok(Plan {
        address: address.to_owned(),
        head,
        body: options.body.as_deref().map(Template::parse),
        next: AtomicU64::new(0),
        started,
        end: started + Duration::from_secs_f64(options.seconds),
        options,
    })
}

impl Plan {
    /// Returns the number of the next request and the start time of its latency; `None` at the end.
    async fn next(&self) -> Option<(u64, Instant)> {
        let n = self.next.fetch_add(1, Relaxed);
        let mut at = Instant::now();
        if self.options.rate > 0.0 {
            let due = self.started + Duration::from_secs_f64(n as f64 / self.options.rate);
            tokio::time::sleep_until(due.min(self.end).into()).await;
            at = due;
        }
        (n < self.options.count && at < self.end).then_some((n, at))
    }

    fn render(&self, n: u64, request: &mut Vec<u8>, body: &mut Vec<u8>) {
        request.clear();
        request.extend_from_slice(self.head.as_bytes());
        if let Some(template) = &self.body {
            body.clear();
            template.render(body, self.options.first + n, self.options.recipients);
            // Writing to memory cannot fail.
            let _ = write!(request, "Content-Length: {}\r\n", body.len());
        }
        request.extend_from_slice(b"\r\n");
        request.extend_from_slice(body);
    }
}

async fn connection(plan: &Plan, seen: &mut LoadStats) {
    let (mut request, mut body) = (Vec::new(), Vec::new());
    let mut link = None;
    let mut failures_in_a_row = 0;
    while let Some((n, at)) = plan.next().await {
        plan.render(n, &mut request, &mut body);
        match tokio::time::timeout(TIMEOUT, exchange(plan, &mut link, &request, seen)).await {
            Ok(Ok(status)) => {
                failures_in_a_row = 0;
                *seen.status.entry(status).or_default() += 1;
                let micros = u64::try_from(at.elapsed().as_micros()).unwrap_or(u64::MAX);
                seen.micros.saturating_record(micros.max(1));
            }
            failed => {
                let why = failed.map_or_else(|e| e.to_string(), |r| format!("{:#?}", r.err()));
                seen.failures += 1;
                seen.last_failure = Some(why);
                link = None;
                failures_in_a_row += 1;
                if failures_in_a_row >= MAX_FAILURES {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// A connection and the bytes read beyond the last response.
type BufferedConnection = (TcpStream, BytesMut);

/// Sends a request, connecting first if needed, and reads the response.
async fn exchange(
    plan: &Plan,
    link: &mut Option<BufferedConnection>,
    request: &[u8],
    seen: &mut LoadStats,
) -> anyhow::Result<u16> {
    let (stream, inbound) = match link {
        Some(link) => link,
        None => {
            let stream = TcpStream::connect(&plan.address).await?;
            stream.set_nodelay(true)?;
            seen.connected += 1;
            link.insert((stream, BytesMut::with_capacity(16 * 1024)))
        }
    };
    stream.write_all(request).await?;
    let (status, length, close) = loop {
        if stream.read_buf(inbound).await? == 0 {
            bail!("connection closed before the response");
        }
        if let Some(answer) = parse_response(inbound)? {
            break answer;
        }
    };
    while inbound.len() < length {
        if stream.read_buf(inbound).await? == 0 {
            bail!("connection closed in the middle of the response");
        }
    }
    inbound.advance(length);
    if close {
        *link = None;
    }
    Ok(status)
}

/// Returns the status, the total length and whether the connection closes; `None` while the head is
/// incomplete.
fn parse_response(inbound: &[u8]) -> anyhow::Result<Option<(u16, usize, bool)>> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head) = response.parse(inbound)? else { return Ok(None) };
    let header = |name: &str| {
        let found = response.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok()
    };
    let length: usize =
        header("content-length").context("the response has no Content-Length")?.parse()?;
    let close = header("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"));
    Ok(Some((response.code.unwrap_or(0), head + length, close)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_delimited_by_its_content_length() {
        let text = b"HTTP/1.1 201 Created\r\ncontent-length: 5\r\n\r\nhello";
        assert_eq!(parse_response(text).unwrap(), Some((201, text.len(), false)));
        assert_eq!(parse_response(&text[..30]).unwrap(), None);
        assert!(parse_response(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
