//! A load generator for HTTP/1.1: closed loop, or open loop at a given rate.

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

/// After this long without an answer a connection is given up.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A connection that failed so many times in a row gives up for good.
const MOST_FAILURES: u32 = 200;

/// What to send, and how fast.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// http://127.0.0.1:PORT/PATH
    #[arg(long)]
    url: String,
    /// The body of a POST; {n} is a running number, {to} a recipient. Without it: GET
    #[arg(long)]
    body: Option<String>,
    /// A header, like "Name: value"; again for more
    #[arg(long)]
    header: Vec<String>,
    /// Connections, each with one request at a time
    #[arg(short, long, default_value_t = 64)]
    connections: usize,
    /// End after so many requests
    #[arg(long, default_value_t = 1_000_000)]
    count: u64,
    /// End after so many seconds
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// Requests a second, with latency from the intended time; 0 is as fast as answers come
    #[arg(long, default_value_t = 0.0)]
    rate: f64,
    /// In which order recipients come
    #[arg(long, value_enum, default_value_t = Recipients::Sequential)]
    recipients: Recipients,
    /// The first running number
    #[arg(long, default_value_t = 0)]
    first: u64,
}

struct Plan {
    options: Options,
    address: String,
    head: String,
    body: Option<Template>,
    next: AtomicU64,
    begun: Instant,
    end: Instant,
}

/// What one connection, or all of them, saw.
struct Seen {
    micros: Histogram<u64>,
    status: BTreeMap<u16, u64>,
    connected: u64,
    failures: u64,
    last_failure: Option<String>,
}

impl Seen {
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

/// `bench load`.
pub(crate) fn main(options: Options) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let plan = Arc::new(plan(options)?);
        let mut connections = JoinSet::new();
        for _ in 0..plan.options.connections {
            let plan = plan.clone();
            let mut seen = Seen::new()?;
            connections.spawn(async move {
                connection(&plan, &mut seen).await;
                seen
            });
        }
        let mut all = Seen::new()?;
        while let Some(seen) = connections.join_next().await {
            all.add(seen?)?;
        }
        output::result(&all.report(plan.begun.elapsed()));
        Ok(())
    })
}

fn plan(options: Options) -> anyhow::Result<Plan> {
    let rest = options.url.strip_prefix("http://").context("the URL must begin with http://")?;
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    if !address.starts_with("127.0.0.1:") {
        bail!("{address} is not on 127.0.0.1: this tool loads nobody else's machine");
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
    let begun = Instant::now();
    Ok(Plan {
        address: address.to_owned(),
        head,
        body: options.body.as_deref().map(Template::parse),
        next: AtomicU64::new(0),
        begun,
        end: begun + Duration::from_secs_f64(options.seconds),
        options,
    })
}

impl Plan {
    /// The next request's number and the time from which its latency counts; `None` at the end.
    async fn next(&self) -> Option<(u64, Instant)> {
        let n = self.next.fetch_add(1, Relaxed);
        let mut at = Instant::now();
        if self.options.rate > 0.0 {
            let due = self.begun + Duration::from_secs_f64(n as f64 / self.options.rate);
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
            // Writing into memory can't fail.
            let _ = write!(request, "Content-Length: {}\r\n", body.len());
        }
        request.extend_from_slice(b"\r\n");
        request.extend_from_slice(body);
    }
}

async fn connection(plan: &Plan, seen: &mut Seen) {
    let (mut request, mut body) = (Vec::new(), Vec::new());
    let mut link = None;
    let mut in_a_row = 0;
    while let Some((n, at)) = plan.next().await {
        plan.render(n, &mut request, &mut body);
        match tokio::time::timeout(TIMEOUT, exchange(plan, &mut link, &request, seen)).await {
            Ok(Ok(status)) => {
                in_a_row = 0;
                *seen.status.entry(status).or_default() += 1;
                let micros = u64::try_from(at.elapsed().as_micros()).unwrap_or(u64::MAX);
                seen.micros.saturating_record(micros.max(1));
            }
            failed => {
                let why = failed.map_or_else(|e| e.to_string(), |r| format!("{:#?}", r.err()));
                seen.failures += 1;
                seen.last_failure = Some(why);
                link = None;
                in_a_row += 1;
                if in_a_row >= MOST_FAILURES {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// A connection and what was read from it beyond the last answer.
type Link = (TcpStream, BytesMut);

/// Sends a request, after connecting where that is needed, and reads its answer.
async fn exchange(
    plan: &Plan,
    link: &mut Option<Link>,
    request: &[u8],
    seen: &mut Seen,
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
            bail!("closed before the answer");
        }
        if let Some(answer) = answer(inbound)? {
            break answer;
        }
    };
    while inbound.len() < length {
        if stream.read_buf(inbound).await? == 0 {
            bail!("closed in the middle of the answer");
        }
    }
    inbound.advance(length);
    if close {
        *link = None;
    }
    Ok(status)
}

/// Status, whole length, and whether the connection ends; `None` while the head is incomplete.
fn answer(inbound: &[u8]) -> anyhow::Result<Option<(u16, usize, bool)>> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head) = response.parse(inbound)? else { return Ok(None) };
    let header = |name: &str| {
        let found = response.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok()
    };
    let length: usize =
        header("content-length").context("the answer has no Content-Length")?.parse()?;
    let close = header("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"));
    Ok(Some((response.code.unwrap_or(0), head + length, close)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_measured_by_its_content_length() {
        let text = b"HTTP/1.1 201 Created\r\ncontent-length: 5\r\n\r\nhello";
        assert_eq!(answer(text).unwrap(), Some((201, text.len(), false)));
        assert_eq!(answer(&text[..30]).unwrap(), None);
        assert!(answer(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
