//! The HTTP service of a node: the routes of the API and the dashboard, and the middleware around
//! them.

use axum::Router;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use heliograph_api::{ApiState, MetricsAccess, PROBLEM_TYPE, ProblemDocuments};
use heliograph_api::{RateLimitByKey, SecurityEvents};
use heliograph_dashboard::DashboardState;
use heliograph_http::layers::access_log::AccessLog;
use heliograph_http::layers::around::{Around, AroundService};
use heliograph_http::layers::in_flight::InFlightLimit;
use heliograph_http::layers::request_id::RequestId;
use heliograph_http::layers::require_https::RequireHttps;
use heliograph_http::layers::security_headers::SecurityHeaders;
use heliograph_http::layers::valid_host::ValidHost;
use heliograph_http::{ErrorDocument, ErrorDocuments, ProtocolError};
use heliograph_http::{ServerOptions, UsageLimit, serve};
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::security_log::SecurityEvent;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

/// The beginnings of the paths of style sheets, scripts and images.
const ASSETS: &[&str] = &["/assets/", "/docs/style.css", "/docs/icon.svg"];

/// The settings of the listener for requests.
pub(crate) struct HttpSettings {
    /// Whether plain HTTP is refused.
    pub(crate) require_https: bool,
    /// Renders problems.
    pub(crate) problems: ProblemDocuments,
}

/// Serves the API and the dashboard until the controller of the gate closes it.
pub(crate) async fn run(
    listener: TcpListener,
    api: ApiState,
    dashboard: DashboardState,
    settings: HttpSettings,
    options: ServerOptions,
) {
    let (api, dashboard) = (Arc::new(api), Arc::new(dashboard));
    let context = dashboard.context.clone();
    // From the outside in. The order matters: problems of all layers below are rendered, and
    // rejected requests are logged with an id, too.
    let middleware = RequestId { generate: move || fresh_id(&context), holds_secret }
        .around(AccessLog { except: heliograph_api::MONITORING_PATHS, quiet: ASSETS, redact })
        .around(SecurityHeaders)
        .around(settings.problems)
        .around(SecurityEvents)
        .around(RequireHttps {
            required: settings.require_https,
            except: heliograph_api::MONITORING_PATHS,
            reject: heliograph_api::https_required,
        })
        .around(ValidHost { reject: heliograph_api::invalid_host })
        .around(RateLimitByKey(api.clone()))
        .around(InFlightLimit {
            gate: options.gate.clone(),
            except: heliograph_api::ALWAYS_SERVED,
            while_draining: heliograph_api::SERVED_WHILE_DRAINING,
            clients: UsageLimit::default(),
            reject: heliograph_api::overloaded,
            reject_client: heliograph_api::too_many_open_requests,
        });
    let service = AroundService::new(middleware, router(api, dashboard));
    serve(listener, service, options).await;
}

/// Serves nothing but the metrics until the controller of the gate closes it.
pub(crate) async fn run_metrics(
    listener: TcpListener,
    access: MetricsAccess,
    context: Context,
    options: ServerOptions,
) {
    let middleware = RequestId { generate: move || fresh_id(&context), holds_secret }
        .around(SecurityHeaders)
        .around(ProblemDocuments::default());
    let router = heliograph_api::metrics_router(access);
    let router = router.fallback(async |uri: Uri| heliograph_api::not_found(uri.path()));
    serve(listener, AroundService::new(middleware, router), options).await;
}

/// Returns the responses to requests that are not valid HTTP, which are logged as they are made.
pub(crate) fn error_documents(context: &Context, problems: ProblemDocuments) -> ErrorDocuments {
    let context = context.clone();
    ErrorDocuments::new(move |error, client| {
        let request_id = fresh_id(&context);
        let id = request_id.to_str().unwrap_or_default();
        let body = problems.protocol_error(error, id).into();
        log_protocol_error(error, client, id);
        ErrorDocument { request_id, content_type: PROBLEM_TYPE, body }
    })
}

fn log_protocol_error(error: ProtocolError, client: IpAddr, request: &str) {
    let status = error.status().as_u16();
    tracing::info!(request, %client, status, "request");
    let reason = match error {
        ProtocolError::Malformed => "malformed",
        ProtocolError::HeadTooLarge => "headers_too_large",
        ProtocolError::PlainHttp => "plain_http",
    };
    let (event, client) = ("request_refused", &*client.to_string());
    SecurityEvent { event, client, reason, ..Default::default() }.refused();
}

/// Builds the router of all routes.
fn router(api: Arc<ApiState>, dashboard: Arc<DashboardState>) -> Router {
    let pages = dashboard.clone();
    let not_found = async move |request: Parts| match wants_page(&request.headers) {
        true => heliograph_dashboard::not_found(&dashboard, request).await,
        false => heliograph_api::not_found(request.uri.path()),
    };
    let dashboard = pages.clone();
    let method_not_allowed = async move |request: Parts| match wants_page(&request.headers) {
        true => heliograph_dashboard::method_not_allowed(&dashboard, request).await,
        false => heliograph_api::method_not_allowed(),
    };
    heliograph_api::router(api)
        .merge(heliograph_dashboard::router(pages))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
}

/// Returns whether the client is a browser that opens a page, not a program.
fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    accepted.contains("text/html")
}

/// Returns the path for the log, without API keys (sent by mistake) and without the tokens of
/// magic links.
fn redact(path: &str) -> &str {
    if holds_secret(path) { "(an API key)" } else { heliograph_dashboard::redact_path(path) }
}

/// Returns whether a text holds an API key.
fn holds_secret(text: &str) -> bool {
    ["hg_live_", "hg_test_"].iter().any(|key| text.contains(key))
}

/// Returns a fresh request id.
fn fresh_id(context: &Context) -> HeaderValue {
    let (id, _) = context.next_id();
    let mut text = [0; uuid::fmt::Simple::LENGTH];
    HeaderValue::from_str(id.simple().encode_lower(&mut text))
        .unwrap_or(HeaderValue::from_static("-"))
}
