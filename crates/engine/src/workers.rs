//! Starts all workers of the engine and stops them together.

use crate::bind_status::{self, WatchedCarrier};
use crate::dispatch::Dispatcher;
use crate::handsets;
use crate::heartbeat::Heartbeat;
use crate::http::authorities::Authorities;
use crate::http::client::HttpClient;
use crate::mail::{self, Mailer};
use crate::maintenance;
use crate::webhooks;
use crate::webhooks::endpoint_worker::WorkerDeps;
use crate::webhooks::request_slots::RequestSlots;
use heliograph_carrier::carrier::Carrier;
use heliograph_carrier::link_status::LinkStatus;
use heliograph_carrier::smsc::simulator::Simulator;
use heliograph_domain::carrier::ReceiptPolicy;
use heliograph_domain::id::CarrierId;
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::writer::Writer;
use heliograph_service::messaging::dispatch::DispatchQueues;
use heliograph_service::webhooks::events::DeliveryQueues;
use std::sync::Arc;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

/// The dependencies of the workers.
pub struct Engine {
    /// The context of the service layer.
    pub context: Context,
    /// The handle of the node's writer.
    pub writer: Writer,
    /// The local queues that hand accepted messages to the dispatchers.
    pub message_queues: DispatchQueues,
    /// The local queues that hand webhook deliveries to the endpoint workers.
    pub delivery_queues: DeliveryQueues,
    /// The carriers of this node, the simulated one included.
    pub carriers: Vec<ConfiguredCarrier>,
    /// The simulated SMSC of this node.
    pub simulator: Simulator,
    /// The mailer, if a mail server is configured.
    pub mailer: Option<Mailer>,
    /// The certificate authorities that webhooks trust in addition to the public ones.
    pub authorities: Authorities,
}

/// A carrier and its settings.
pub struct ConfiguredCarrier {
    /// The id in the database.
    pub id: CarrierId,
    /// The name in the configuration.
    pub name: String,
    /// The protocol implementation.
    pub carrier: Box<dyn Carrier>,
    /// The number of unanswered parts.
    pub window: usize,
    /// The receipts that the carrier sends.
    pub receipts: ReceiptPolicy,
}

/// Returns how many messages to lease ahead for a carrier with this window. After a crash, at most
/// this many may be sent twice.
const fn claim_ahead(window: usize) -> usize {
    let double = window.saturating_mul(2);
    if double > 32 { double } else { 32 }
}

/// Runs all workers until `stop` turns true and each has released its leases.
pub async fn run(engine: Engine, stop: watch::Receiver<bool>) {
    let Engine { context, writer, message_queues, delivery_queues, carriers, .. } = engine;
    let Engine { simulator, mailer, authorities, .. } = engine;
    let mut workers = JoinSet::new();
    let (heartbeat, fence) = Heartbeat::begin(&context).await;
    workers.spawn(heartbeat.run(stop.clone()));
    let (status_changed, mut links) = (Arc::new(Notify::new()), Vec::new());
    for ConfiguredCarrier { id, name, carrier, window, receipts } in carriers {
        let link_status = Arc::new(LinkStatus::new(status_changed.clone()));
        links.push(WatchedCarrier { carrier: id, window, link_status: link_status.clone() });
        let deps = (&context, &writer, &message_queues);
        let (dispatcher, channels) = Dispatcher::new(
            (id, name, receipts),
            claim_ahead(window),
            deps,
            (link_status, &fence),
            &stop,
        );
        workers.spawn(carrier.run(channels));
        workers.spawn(dispatcher.run());
    }
    workers.spawn(bind_status::run(context.clone(), links, status_changed, stop.clone()));
    let client = HttpClient::new(context.names.clone(), &authorities.0);
    let deps = WorkerDeps {
        context: context.clone(),
        writer: writer.clone(),
        queues: delivery_queues,
        client,
        request_slots: RequestSlots::default(),
        fence,
        stop: stop.clone(),
    };
    workers.spawn(webhooks::run(deps));
    workers.spawn(handsets::run(context.clone(), simulator, stop.clone()));
    if let Some(mailer) = mailer {
        workers.spawn(mail::run(context.clone(), mailer, stop.clone()));
    }
    workers.spawn(maintenance::run(context, writer, stop));
    while let Some(ended) = workers.join_next().await {
        if let Err(e) = ended {
            tracing::error!(error = %e, "worker failed");
        }
    }
}
