//! What is done around every request: its id, one log line, problems rendered, nothing taken while draining.

use crate::api;
use crate::app::{App, REQUEST_ID};
use crate::auth;
use crate::dashboard::peer::Peer;
use crate::error::Problem;
use crate::lent::Lent;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Version, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tower::Service;

/// Browsers that were once answered by HTTPS use nothing else for a year.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// How much of a refused body is taken in, and for how long.
const DROPPED_BODY: usize = 64 << 10;
const DROPPED_BODY_TIME: Duration = Duration::from_secs(1);

/// Answers one request, which came from this address, over TLS or not.
pub(crate) async fn answer(
    app: Arc<App>,
    mut router: Router,
    (from, tls): (IpAddr, bool),
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let begun = Instant::now();
    let (mut head, body) = request.into_parts();
    let id = head.headers.get(REQUEST_ID).filter(|v| is_sane(v)).cloned();
    let id = id.unwrap_or_else(|| fresh_id(&app));
    let (method, uri, version) = (head.method.clone(), head.uri.clone(), head.version);
    let watched = ["/healthz", "/readyz", "/metrics"].contains(&uri.path());
    let https = tls || app.behind_proxy && came_by_https(&head.headers);
    let (body, lent) = match version {
        Version::HTTP_2 => {
            let lent = Lent::new(body);
            (lent.body(), Some(lent))
        }
        _ => (Body::new(body), None),
    };
    let taken = app.rate_limit.is_on().then(|| auth::known(&app, &head.headers)).flatten();
    let taken = taken.and_then(|key| app.rate_limit.take(key));
    let stranger = (app.rate_limit.is_on() && taken.is_none()).then(|| head.headers.clone());
    let permit = app.gate.enter();
    let response = if permit.is_none() && !watched {
        Box::pin(refuse(&head.headers, body, Problem::overloaded())).await
    } else if taken.is_some_and(|taken| taken.wait.is_some()) {
        Box::pin(refuse(&head.headers, body, Problem::rate_limited())).await
    } else if method == Method::POST && uri.path() == api::messages::send::SEND_SMS {
        // The one busy door needs no search: the router costs as much as reading the request. (What is rare is
        // boxed, here and below it: an answer in the making is moved and kept for each connection.)
        api::messages::send::send_sms(&app, &head, body).await.into_response()
    } else {
        head.extensions.insert(Peer::new(from, https, app.behind_proxy, &head.headers));
        Box::pin(router.call(Request::from_parts(head, body))).await?
    };
    if let Some(lent) = lent {
        Box::pin(lent.drop_rest()).await;
    }
    let text = id.to_str().unwrap_or_default();
    let mut response = rendered(response, text);
    if !watched {
        let status = response.status().as_u16();
        let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let (method, path) = (method.as_str(), logged(uri.path()));
        tracing::info!(request = text, method, path, status, micros, "request");
    }
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, id);
    if https {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HSTS);
    }
    if permit.is_none() && app.gate.is_draining() && version < Version::HTTP_2 {
        // The client's next request belongs to another node, or to our successor.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    // A key that this node met for the first time is known only now.
    let met = || Some(app.rate_limit.take(auth::known(&app, &stranger?)?)?.granted());
    if let Some(taken) = taken.or_else(met) {
        taken.tell(headers);
    }
    Ok(response)
}

/// Whether the proxy in front of us was asked by HTTPS. Of several proxies the first is the client's.
fn came_by_https(headers: &HeaderMap) -> bool {
    let protocol = headers.get(FORWARDED_PROTO).and_then(|v| v.to_str().ok()).unwrap_or_default();
    protocol.split(',').next().is_some_and(|first| first.trim().eq_ignore_ascii_case("https"))
}

/// There is no room, or soon no node, or the key asks too much. A body that is still coming is taken in and dropped:
/// to its sender an answer that is followed by the connection's end might look like a broken connection.
async fn refuse(headers: &HeaderMap, body: Body, why: Problem) -> Response {
    if !headers.contains_key(header::EXPECT) {
        let whole = axum::body::to_bytes(body, DROPPED_BODY);
        drop(tokio::time::timeout(DROPPED_BODY_TIME, whole).await);
    }
    why.into_response()
}

/// Problems take the place of their empty responses; headers that are already there (Allow) stay.
fn rendered(mut response: Response, request_id: &str) -> Response {
    let Some(problem) = response.extensions_mut().remove::<Problem>() else { return response };
    let mut full = problem.render(request_id);
    for (name, value) in response.headers() {
        if !full.headers().contains_key(name) && name != header::CONTENT_LENGTH {
            full.headers_mut().insert(name, value.clone());
        }
    }
    full
}

/// A key that was put into the address by mistake must not stand in the log, nor what lets somebody in.
fn logged(path: &str) -> &str {
    let links = ["/sign-in/", "/reset/", "/join/"];
    match links.into_iter().find(|link| path.starts_with(link)) {
        _ if holds_key(path) => "(an API key)",
        Some(link) => link,
        None => path,
    }
}

fn holds_key(text: &str) -> bool {
    ["hg_live_", "hg_test_"].iter().any(|key| text.contains(key))
}

/// An id that can be logged and searched for as it is.
fn is_sane(id: &HeaderValue) -> bool {
    let bytes = id.as_bytes();
    (1..=128).contains(&bytes.len())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
        && !id.to_str().is_ok_and(holds_key)
}

fn fresh_id(app: &App) -> HeaderValue {
    let (id, _) = app.context.next_id();
    let mut text = [0; uuid::fmt::Simple::LENGTH];
    HeaderValue::from_str(id.simple().encode_lower(&mut text))
        .unwrap_or(HeaderValue::from_static("-"))
}
