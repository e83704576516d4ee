//! A bare axum server that parses a message and responds like Heliograph, but stores nothing.

use crate::output;
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::net::Ipv4Addr;
use tokio::net::TcpListener;

/// The arguments of `bench echo`.
#[derive(clap::Args, Debug)]
pub(crate) struct EchoArgs {
    /// Port on 127.0.0.1
    #[arg(long, default_value_t = 8091)]
    port: u16,
}

/// The request body of `POST /v1/send/sms`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request<'a> {
    #[serde(borrow)]
    originator: Cow<'a, str>,
    #[serde(borrow)]
    recipient: Cow<'a, str>,
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow, default)]
    reference: Option<Cow<'a, str>>,
}

/// A response with the same fields and size as Heliograph's; most values are constant.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EchoResponse<'a> {
    id: &'static str,
    recipient: &'a str,
    status: &'static str,
    originator: &'a str,
    reference: Option<&'a str>,
    text: &'a str,
    mode: &'static str,
    encoding: &'static str,
    parts: u16,
    parts_accepted: u16,
    parts_delivered: u16,
    price: &'static str,
    currency: &'static str,
    created_at: &'static str,
    expires_at: &'static str,
    sent_at: Option<&'static str>,
    done_at: Option<&'static str>,
    failure: Option<&'static str>,
    in_doubt: bool,
    possible_duplicate: bool,
}

const ID: &str = "msg_019aa2f0-7c3e-7d4b-9a51-3f2b6c8d0e17";

async fn echo(body: Bytes) -> Response {
    let Ok(request) = serde_json::from_slice::<Request<'_>>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let answer = EchoResponse {
        id: ID,
        recipient: request.recipient.trim_start_matches('+'),
        status: "QUEUED",
        originator: &request.originator,
        reference: request.reference.as_deref(),
        text: &request.text,
        mode: "live",
        encoding: "GSM_7",
        parts: 1,
        parts_accepted: 0,
        parts_delivered: 0,
        price: "0.0100",
        currency: "EUR",
        created_at: "2026-11-20T09:00:00.000Z",
        expires_at: "2026-11-22T09:00:00.000Z",
        sent_at: None,
        done_at: None,
        failure: None,
        in_doubt: false,
        possible_duplicate: false,
    };
    let json = serde_json::to_vec(&answer).unwrap_or_default();
    let kind = HeaderValue::from_static("application/json");
    (StatusCode::CREATED, [(header::CONTENT_TYPE, kind)], json).into_response()
}

/// Runs `bench echo`.
pub(crate) fn main(options: &EchoArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
        output::stderr(&format!("echo on {}", listener.local_addr()?));
        let listener = listener.tap_io(|socket| {
            let _ = socket.set_nodelay(true);
        });
        axum::serve(listener, Router::new().route("/v1/send/sms", post(echo))).await?;
        Ok(())
    })
}
