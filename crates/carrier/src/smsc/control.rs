//! The control port: a little HTTP, so that scripts can look at handsets and reply from them.

use crate::smsc::handset::HandsetMessage;
use crate::smsc::listen::listen;
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

/// The most connections at once.
const MAX_CONNECTIONS: usize = 100;

/// The longest body: more than the longest text that can be sent.
const MAX_BODY: usize = 64 * 1024;

/// How long a connection may last, from its beginning to its one answer.
const WITHIN: Duration = Duration::from_secs(10);

/// What a handset's owner writes, and to whom.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    to: String,
    text: String,
}

/// A message as scripts see it.
#[derive(Serialize)]
struct Shown {
    from: String,
    to: String,
    text: String,
    parts: u8,
    at: String,
}

impl From<HandsetMessage> for Shown {
    fn from(m: HandsetMessage) -> Self {
        let (to, at) = (m.to.to_string(), m.at.to_string());
        Self { from: m.from, to, text: m.text, parts: m.parts, at }
    }
}

/// What is wrong with a request.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error(
        "there are GET /handsets/{{number}}/messages and POST /handsets/{{number}}/reply, nothing else"
    )]
    NotFound,
    #[error("here only {0} is possible")]
    Method(&'static str),
    #[error("the handset's number must be 1 to 15 digits")]
    Number,
    #[error("the body is longer than 64 KiB")]
    TooLong,
    #[error("the body did not arrive: {0}")]
    Broken(String),
    #[error("the body must be {{\"to\": \"…\", \"text\": \"…\"}}: {0}")]
    Body(serde_json::Error),
    #[error(transparent)]
    Reply(#[from] ReplyError),
}

impl Refusal {
    const fn status(&self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Reply(ReplyError::Nobody | ReplyError::Full) => StatusCode::CONFLICT,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

/// Answers `GET /handsets/{number}/messages` and `POST /handsets/{number}/reply` until `stop` turns
/// true. It asks nobody who they are: it belongs on an address that only this machine can reach.
pub async fn serve(listener: TcpListener, simulator: Simulator, stop: watch::Receiver<bool>) {
    let connections = stop.clone();
    listen(listener, MAX_CONNECTIONS, stop, |stream| {
        connection(stream, simulator.clone(), connections.clone())
    })
    .await;
}

/// One request and its answer: scripts are not in such a hurry that more were worth it.
async fn connection(stream: TcpStream, simulator: Simulator, mut stop: watch::Receiver<bool>) {
    let service = service_fn(|request| {
        let simulator = simulator.clone();
        async move { Ok::<_, Infallible>(answer(&simulator, request).await) }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    let work = http.keep_alive(false).serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        () = stopped(&mut stop) => {}
        done = timeout(WITHIN, work) => match done {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!("a control connection broke: {error}"),
            Err(_) => tracing::debug!("a control connection took longer than {WITHIN:?}"),
        }
    }
}

async fn answer(simulator: &Simulator, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (status, body, allow) = match route(simulator, request).await {
        Ok((status, body)) => (status, body, None),
        Err(refusal) => {
            let allow = match refusal {
                Refusal::Method(method) => Some(method),
                _ => None,
            };
            (refusal.status(), json!({ "error": refusal.to_string() }), allow)
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
) -> Result<(StatusCode, Value), Refusal> {
    let path = request.uri().path().to_owned();
    let mut path = path.split('/').skip(1);
    let (Some("handsets"), Some(number), Some(what), None) =
        (path.next(), path.next(), path.next(), path.next())
    else {
        return Err(Refusal::NotFound);
    };
    match (what, request.method()) {
        ("messages", &Method::GET) => {
            let messages = simulator.handsets().messages(recipient(number)?);
            Ok((StatusCode::OK, json!(messages.into_iter().map(Shown::from).collect::<Vec<_>>())))
        }
        ("reply", &Method::POST) => {
            let from = recipient(number)?;
            let reply = read(request.into_body()).await?;
            simulator.reply(from, &reply.to, &reply.text, None)?;
            Ok((StatusCode::ACCEPTED, json!({})))
        }
        ("messages", _) => Err(Refusal::Method("GET")),
        ("reply", _) => Err(Refusal::Method("POST")),
        _ => Err(Refusal::NotFound),
    }
}

fn recipient(number: &str) -> Result<Recipient, Refusal> {
    Recipient::from_digits(number).ok_or(Refusal::Number)
}

async fn read(body: Incoming) -> Result<Reply, Refusal> {
    let body = Limited::new(body, MAX_BODY).collect().await.map_err(|error| match error
        .downcast_ref::<LengthLimitError>(
    ) {
        Some(_) => Refusal::TooLong,
        None => Refusal::Broken(error.to_string()),
    })?;
    serde_json::from_slice(&body.to_bytes()).map_err(Refusal::Body)
}
