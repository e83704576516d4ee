//! A node of the service without network: its context with default settings, and its writer.

use crate::database::TestDb;
use crate::resolver::TestResolver;
use heliograph_domain::account_limit::{AccountLimit, AccountLimits};
use heliograph_domain::carrier::{Route, RoutingTable};
use heliograph_domain::egress_policy::EgressPolicy;
use heliograph_domain::money::Amount;
use heliograph_domain::rate::Rates;
use heliograph_service::group_commit::batch::WriterDeps;
use heliograph_service::group_commit::run;
use heliograph_service::kernel::account_limits::LimitTable;
use heliograph_service::kernel::context::{
    Context, KeywordReplies, NumberOwners, Settings, SignUpSettings,
};
use heliograph_service::kernel::name_resolution::NameResolution;
use heliograph_service::kernel::notifier::ChangeNotifier;
use heliograph_service::kernel::writer::{self, Writer};
use heliograph_service::messaging::dispatch::DispatchQueues;
use heliograph_service::operations::nodes;
use heliograph_service::webhooks::events::DeliveryQueues;
use heliograph_store::Db;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

/// The name of the carrier that all live messages go to.
pub const CARRIER: &str = "acme";

/// The price of one part of a live message.
pub const PART_PRICE: Amount = Amount(100);

/// Returns the context of a test's only node: the clock, ids and random bytes of `db`, one carrier
/// named [`CARRIER`], [`PART_PRICE`], and open sign-up with mail.
pub async fn context(db: &TestDb) -> Context {
    node_context(db, db.db.clone(), 1).await
}

/// Returns the context of the node with this identity, on its own connections (see
/// [`TestDb::reopen`]) or shared ones. Everything else is as in [`context`].
pub async fn node_context(db: &TestDb, connections: Db, identity: u128) -> Context {
    let node = nodes::start(&connections, Uuid::from_u128(identity)).await.unwrap();
    let (carriers, simulated) =
        nodes::carrier_ids(&connections, &[CARRIER.to_owned()]).await.unwrap();
    let settings = Settings {
        routes: RoutingTable::new(vec![Route { prefix: String::new(), carriers }]),
        rates: Rates::new(Some(PART_PRICE), Vec::new()),
        simulated,
        number_owners: NumberOwners::default(),
        keyword_replies: KeywordReplies::default(),
        sign_up: SignUpSettings {
            enabled: true,
            currency: "EUR".to_owned(),
            base_url: "http://localhost".to_owned(),
            base_url_configured: false,
            mail_enabled: true,
        },
        live_carriers: false,
        operator_two_factor: false,
        egress_policy: EgressPolicy::default(),
        webhook_timeout: Duration::from_secs(15),
        webhook_retention: Duration::from_secs(30 * 86_400),
        test_message_retention: Some(Duration::from_secs(35 * 86_400)),
        live_message_retention: None,
    };
    Context {
        db: connections,
        clock: db.clock.clone(),
        ids: db.ids.clone(),
        random: db.random.clone(),
        notifier: ChangeNotifier::default(),
        names: NameResolution::new(TestResolver),
        node,
        limits: LimitTable::new(limits()),
        settings: watch::channel(Arc::new(settings)).1,
    }
}

/// Returns the default limits, without a rate limit, whose headers depend on the time of the
/// process.
fn limits() -> AccountLimits {
    AccountLimits::new(|limit| match limit {
        AccountLimit::RequestsPerSecond => 0,
        other => AccountLimits::default().get(other),
    })
}

/// A running writer (group commit). Dropping it stops the writer at its next wait, also if other
/// handles remain.
#[derive(Debug)]
pub struct TestWriter {
    /// The handle to the writer; cheap to clone.
    pub writer: Writer,
    _task: JoinSet<()>,
}

/// Runs the writer of a node as a task. No dispatcher and no webhook worker is connected: messages
/// and deliveries stay in the database.
pub fn writer(cx: &Context) -> TestWriter {
    let (writer, inbox) = writer::channel();
    let deps = WriterDeps {
        context: cx.clone(),
        dispatch_queues: DispatchQueues::default(),
        delivery_queues: DeliveryQueues::default(),
    };
    let mut task = JoinSet::new();
    task.spawn(run::run(deps, inbox));
    TestWriter { writer, _task: task }
}
