//! The router of the API with its public middleware, called inside of the process, over the
//! database of one test.

use crate::exchange::{ApiResponse, json_request, request};
use crate::redaction::Redaction;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{Uri, request};
use axum::response::Response;
use heliograph_api::{ApiState, ProblemDocuments, RateLimit, RateLimitByKey};
use heliograph_domain::account::{Mode, Scopes};
use heliograph_domain::account_limit::AccountLimit;
use heliograph_domain::fields::CreditNote;
use heliograph_domain::id::AccountId;
use heliograph_domain::money::Amount;
use heliograph_http::layers::around::{Around, AroundService};
use heliograph_http::layers::in_flight::InFlightLimit;
use heliograph_http::{DrainController, UsageLimit};
use heliograph_service::identity::account_limits;
use heliograph_service::identity::accounts;
use heliograph_service::identity::api_keys::{self, KeySpec, Keyring};
use heliograph_service::kernel::audit::Actor;
use heliograph_service::kernel::context::Context;
use heliograph_testing::{TestDb, TestWriter};
use serde_json::Value;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::watch;
use tower::ServiceExt;
use tower::util::BoxCloneService;

/// The API of a node without network and without carriers: messages stay queued.
pub(crate) struct TestApi {
    pub(crate) context: Context,
    pub(crate) writer: TestWriter,
    pub(crate) drain: DrainController,
    /// The number of requests per second that a key may send; 0 turns the limit off.
    _nodes: watch::Sender<u32>,
    service: BoxCloneService<Request, Response, Infallible>,
    redaction: Redaction,
    /// Last, so that the database is removed after everything that uses it.
    pub(crate) db: TestDb,
}

impl TestApi {
    pub(crate) async fn start() -> Self {
        let db = TestDb::new().await;
        let context = heliograph_testing::context(&db).await;
        Self::over(db, context)
    }

    /// Starts the API with this context.
    pub(crate) fn over(db: TestDb, context: Context) -> Self {
        let writer = heliograph_testing::writer(&context);
        let drain = DrainController::new(64);
        let (nodes, sharing) = watch::channel(1);
        let state = Arc::new(ApiState::new(
            context.clone(),
            writer.writer.clone(),
            Keyring::default(),
            RateLimit::new(sharing),
            drain.gate(),
        ));
        let router = heliograph_api::router(state.clone())
            .fallback(async |uri: Uri| heliograph_api::not_found(uri.path()))
            .method_not_allowed_fallback(async || heliograph_api::method_not_allowed());
        let in_flight = InFlightLimit {
            gate: drain.gate(),
            clients: UsageLimit::default(),
            except: heliograph_api::ALWAYS_SERVED,
            while_draining: heliograph_api::SERVED_WHILE_DRAINING,
            reject: heliograph_api::overloaded,
            reject_client: heliograph_api::too_many_open_requests,
        };
        let middleware =
            ProblemDocuments::default().around(RateLimitByKey(state)).around(in_flight);
        let service = AroundService::new(middleware, router);
        let service = BoxCloneService::new(service);
        let redaction = Redaction::new(context.db.now());
        Self { context, writer, drain, _nodes: nodes, service, redaction, db }
    }

    /// Starts the API with an account that has a balance of 1.0000, and returns its live key.
    pub(crate) async fn with_key() -> (Self, String) {
        let api = Self::start().await;
        let key = api.live_key("ann@example.com", 1_000_000).await;
        (api, key)
    }

    /// Creates an account and returns its live key.
    pub(crate) async fn live_key(&self, email: &str, balance: i64) -> String {
        let account = self.account(email, balance).await;
        self.key(account, Mode::Live, Scopes::ALL).await
    }

    pub(crate) async fn account(&self, email: &str, balance: i64) -> AccountId {
        let made = accounts::create(&self.context, email, "EUR", false).await.unwrap().unwrap();
        let (amount, note) = (Amount(balance), CreditNote::default());
        if balance > 0 {
            accounts::credit(&self.context, &Actor::operator(made), amount, &note).await.unwrap();
        }
        made
    }

    /// Sets a limit of the account with this owner; 0 means no limit.
    pub(crate) async fn limit(&self, email: &str, limit: AccountLimit, value: u32) {
        let account = accounts::resolve(&self.context, &email.parse().unwrap()).await.unwrap().id;
        let (by, changes) = (Actor::operator(account), [(limit, Some(value))]);
        account_limits::change(&self.context, &by, &changes).await.unwrap();
    }

    pub(crate) async fn key(&self, account: AccountId, mode: Mode, scopes: Scopes) -> String {
        let (by, name) = (Actor::operator(account), "key".parse().unwrap());
        let random = self.context.random::<64>().unwrap();
        let spec = KeySpec { mode, scopes, name: &name };
        let (_, key) = api_keys::create(&self.context, &by, spec, &random).await.unwrap();
        key.reveal().to_owned()
    }

    pub(crate) async fn get(&self, key: &str, path: &str) -> ApiResponse {
        self.ask(request("GET", key, path), "").await
    }

    pub(crate) async fn delete(&self, key: &str, path: &str) -> ApiResponse {
        self.ask(request("DELETE", key, path), "").await
    }

    pub(crate) async fn post(&self, key: &str, path: &str, body: &Value) -> ApiResponse {
        self.ask(json_request(key, path), body.to_string()).await
    }

    pub(crate) async fn ask(
        &self,
        request: request::Builder,
        body: impl Into<Body>,
    ) -> ApiResponse {
        let request = request.header("X-Request-Id", "test").body(body.into()).unwrap();
        let (head, body) = self.service.clone().oneshot(request).await.unwrap().into_parts();
        let body = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().into()).unwrap();
        ApiResponse::new(head.status, head.headers, body, |shown| self.redaction.apply(shown))
    }
}
