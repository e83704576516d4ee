//! The control port: a small HTTP API for scripts to read the messages of handsets and to reply.

use crate::smsc::accept_loop;
use crate::smsc::handset::HandsetMessage;
use crate::smsc::simulator::{ReplyError, Simulator};
use crate::stop::stopped;
use bytes::Bytes;
use heliograph_domain::phone::Recipient;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

/// The connection limit.
const MAX_CONNECTIONS: usize = 100;

/// The maximum request body in bytes: more than the longest text that can be sent.
const MAX_BODY: usize = 64 * 1024;

/// The time limit of a connection, from accept to its one response.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The body of a request to reply from a handset.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplyRequest {
    to: String,
    text: String,
}

/// A message in a response.
#[derive(Serialize)]
struct MessageBody {
    from: String,
    to: String,
    text: String,
    parts: u8,
    at: String,
}

impl From<HandsetMessage> for MessageBody {
    fn from(m: HandsetMessage) -> Self {
        let (to, at) = (m.to.to_string(), m.at.to_string());
        Self { from: m.from, to, text: m.text, parts: m.parts, at }
    }
}

/// The error responses.
#[derive(Debug, thiserror::Error)]
enum ControlError {
    #[error("not found: use GET /handsets/{{number}}/messages or POST /handsets/{{number}}/reply")]
    NotFound,
    #[error("method not allowed: use {0}")]
    Method(&'static str),
    #[error("the handset's number must be 1 to 15 digits")]
    Number,
    #[error("the body is longer than 64 KiB")]
    TooLong,
    #[error("failed to read the body: {0}")]
    Read(String),
    #[error("the body must be {{\"to\": \"…\", \"text\": \"…\"}}: {0}")]
    Body(serde_json::Error),
    #[error(transparent)]
    Reply(#[from] ReplyError),
}

impl ControlError {
    const fn status(&self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Reply(ReplyError::NoReceiver | ReplyError::QueueFull) => StatusCode::CONFLICT,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

/// Serves `GET /handsets/{number}/messages` and `POST /handsets/{number}/reply` until `stop` turns
/// true. There is no authentication: listen only on an address that only this machine can reach.
pub async fn serve(listener: TcpListener, simulator: Simulator, stop: watch::Receiver<bool>) {
    let connections = stop.clone();
    accept_loop::run(listener, MAX_CONNECTIONS, stop, |stream| {
        connection(stream, simulator.clone(), connections.clone())
    })
    .await;
}

/// Serves one request, without keep-alive: the control port needs no throughput.
async fn connection(stream: TcpStream, simulator: Simulator, mut stop: watch::Receiver<bool>) {
    let service = service_fn(|request| {
        let simulator = simulator.clone();
        async move { Ok::<_, Infallible>(respond(&simulator, request).await) }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    let work = http.keep_alive(false).serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        () = stopped(&mut stop) => {}
        done = timeout(TIMEOUT, work) => match done {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "control connection failed"),
            Err(_) => tracing::debug!(timeout = ?TIMEOUT, "control connection timed out"),
        }
    }
}

async fn respond(simulator: &Simulator, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (status, body, allow) = match route(simulator, request).await {
        Ok((status, body)) => (status, body, None),
        Err(error) => {
            let allow = match error {
                ControlError::Method(method) => Some(method),
                _ => None,
            };
            (error.status(), json!({ "error": error.to_string() }), allow)
        }
    };
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(method) = allow {
        headers.insert(ALLOW, HeaderValue::from_static(method));
    }
    response
}

async fn route(
    simulator: &Simulator,
    request: Request<Incoming>,
) -> Result<(StatusCode, Value), ControlError> {
    let path = request.uri().path().to_owned();
    let mut path = path.split('/').skip(1);
    let (Some("handsets"), Some(number), Some(resource), None) =
        (path.next(), path.next(), path.next(), path.next())
    else {
        return Err(ControlError::NotFound);
    };
    match (resource, request.method()) {
        ("messages", &Method::GET) => {
            let messages = simulator.handsets().messages(recipient(number)?);
            let messages: Vec<_> = messages.into_iter().map(MessageBody::from).collect();
            Ok((StatusCode::OK, json!(messages)))
        }
        ("reply", &Method::POST) => {
            let from = recipient(number)?;
            let reply = read(request.into_body()).await?;
            simulator.reply(from, &reply.to, &reply.text, None)?;
            Ok((StatusCode::ACCEPTED, json!({})))
        }
        ("messages", _) => Err(ControlError::Method("GET")),
        ("reply", _) => Err(ControlError::Method("POST")),
        _ => Err(ControlError::NotFound),
    }
}

fn recipient(number: &str) -> Result<Recipient, ControlError> {
    Recipient::from_digits(number).ok_or(ControlError::Number)
}

async fn read(body: Incoming) -> Result<ReplyRequest, ControlError> {
    let body = Limited::new(body, MAX_BODY).collect().await.map_err(|error| match error
        .downcast_ref::<LengthLimitError>(
    ) {
        Some(_) => ControlError::TooLong,
        None => ControlError::Read(error.to_string()),
    })?;
    serde_json::from_slice(&body.to_bytes()).map_err(ControlError::Body)
}
