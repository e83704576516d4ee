//! Receives and verifies Heliograph webhooks, and prints `verified TYPE ID` for each.
//!
//! `WEBHOOK_SECRET=whsec_… PORT=9000 cargo run --example webhook_receiver`

#![expect(clippy::print_stdout, reason = "the example prints what it receives")]

use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use standardwebhooks::Webhook;
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

const LONGEST_HEAD: u64 = 64 << 10;
const LONGEST_BODY: u64 = 1 << 20;

/// Verifies a POST with this raw body and handles the event, or returns why it was rejected.
fn receive(webhook: &Webhook, headers: &HeaderMap, body: &[u8]) -> Result<(), Box<dyn Error>> {
    webhook.verify(body, headers)?;
    let event: Value = serde_json::from_slice(body)?;
    let kind = event.get("type").and_then(Value::as_str).ok_or("the event has no type")?;
    let id = headers.get("webhook-id").ok_or("webhook-id is missing")?.to_str()?;
    // The same id can arrive again: process each id only once.
    println!("verified {kind} {id}");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let secret = std::env::var("WEBHOOK_SECRET")?;
    if secret.trim_start_matches("whsec_").is_empty() {
        return Err("WEBHOOK_SECRET is empty: anyone could sign".into());
    }
    let webhook = Webhook::new(&secret)?;
    let port: u16 = std::env::var("PORT")?.parse()?;
    for stream in TcpListener::bind((Ipv4Addr::LOCALHOST, port))?.incoming() {
        // A client that disconnects gets no response; the next client does.
        let _ = stream.map_err(Box::from).and_then(|stream| serve(stream, &webhook));
    }
    Ok(())
}

/// Reads one request and responds to it.
fn serve(mut stream: TcpStream, webhook: &Webhook) -> Result<(), Box<dyn Error>> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let headers = head(&mut reader)?;
    let length = headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
    let length: u64 = length.unwrap_or(0);
    let (status, words) = if length > LONGEST_BODY {
        ("413 Content Too Large", "the body is longer than 1 MiB".to_owned())
    } else {
        let mut body = Vec::new();
        reader.take(length).read_to_end(&mut body)?;
        match receive(webhook, &headers, &body) {
            Ok(()) => ("204 No Content", String::new()),
            Err(why) => ("400 Bad Request", format!("not verified: {why}")),
        }
    };
    let answer = format!("HTTP/1.1 {status}\r\nConnection: close\r\n\r\n{words}");
    Ok(stream.write_all(answer.as_bytes())?)
}

fn head(reader: &mut impl BufRead) -> Result<HeaderMap, Box<dyn Error>> {
    let mut headers = HeaderMap::new();
    for line in reader.take(LONGEST_HEAD).lines().skip(1) {
        let line = line?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(HeaderName::try_from(name)?, HeaderValue::try_from(value.trim())?);
    }
    Ok(headers)
}
