//! Webhook delivery: the supervisor, which runs one worker for each endpoint with pending
//! deliveries.

mod circuit_breaker;
pub(crate) mod endpoint_worker;
mod post;
pub(crate) mod request_slots;

use crate::webhooks::endpoint_worker::{EndpointConfig, EndpointWorker, WorkerDeps};
use crate::worker::{PeriodicTask, Worker};
use heliograph_domain::id::EndpointId;
use heliograph_domain::webhook::WebhookEndpoint;
use heliograph_service::kernel::error::Result;
use heliograph_service::webhooks::deliveries;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The polling interval of the table without a notification, for deliveries left by other nodes and
/// for retries that come due.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Starts, updates and ends the endpoint workers of this node.
struct Supervisor {
    deps: WorkerDeps,
    configs: HashMap<EndpointId, watch::Sender<EndpointConfig>>,
    workers: JoinSet<()>,
}

/// Runs until `stop` turns true and every worker has released its leases.
pub(crate) async fn run(deps: WorkerDeps) {
    let stop = deps.stop.clone();
    let mut supervisor = Supervisor { deps, configs: HashMap::new(), workers: JoinSet::new() };
    Worker { interval: POLL_INTERVAL, stop }.run(&mut supervisor).await;
    while supervisor.workers.join_next().await.is_some() {}
}

impl PeriodicTask for Supervisor {
    const FAILURE: &'static str = "failed to start webhook workers";

    async fn turn(&mut self) -> Result<()> {
        let due: HashMap<EndpointId, bool> =
            deliveries::due_endpoints(&self.deps.context).await?.into_iter().collect();
        let active: Vec<EndpointId> = self.configs.keys().copied().collect();
        for id in active {
            self.update(id, due.get(&id).copied()).await?;
        }
        for (id, urgent) in due {
            if !self.configs.contains_key(&id)
                && let Some(endpoint) = deliveries::endpoint(&self.deps.context, id).await?
            {
                match endpoint.off.is_some() && !urgent {
                    true => deliveries::drop_pending_if_off(&self.deps.context, id).await?,
                    false => self.start(endpoint, urgent),
                }
            }
        }
        Ok(())
    }

    async fn woken(&mut self) {
        tokio::select! {
            () = self.deps.queues.unserved() => {}
            Some(ended) = self.workers.join_next() => self.on_ended(ended),
        }
    }
}

impl Supervisor {
    /// Passes changes of the endpoint, and the news that deliveries are due, to its worker.
    async fn update(&mut self, id: EndpointId, due: Option<bool>) -> Result<()> {
        let endpoint = deliveries::endpoint(&self.deps.context, id).await?;
        let Some(endpoint) = endpoint else {
            // Dropping the sender ends the worker.
            self.configs.remove(&id);
            return Ok(());
        };
        if endpoint.off.is_some() && due == Some(false) {
            deliveries::drop_pending_if_off(&self.deps.context, id).await?;
        }
        let Some(config) = self.configs.get(&id) else { return Ok(()) };
        let urgent = due == Some(true);
        let known = config.borrow().clone();
        if due.is_some() || urgent != known.urgent || *known.endpoint != endpoint {
            config.send_replace(EndpointConfig { endpoint: Arc::new(endpoint), urgent });
        }
        Ok(())
    }

    fn start(&mut self, endpoint: WebhookEndpoint, urgent: bool) {
        let id = endpoint.id;
        let config = watch::Sender::new(EndpointConfig { endpoint: Arc::new(endpoint), urgent });
        match EndpointWorker::new(self.deps.clone(), config.subscribe()) {
            Some(worker) => {
                self.workers.spawn(worker.run());
                self.configs.insert(id, config);
            }
            None => tracing::warn!(endpoint = id.0, "invalid endpoint URL in the database"),
        }
    }

    fn on_ended(&mut self, ended: std::result::Result<(), tokio::task::JoinError>) {
        if let Err(error) = ended {
            tracing::error!(%error, "webhook worker failed");
        }
        self.configs.retain(|_, config| !config.is_closed());
    }
}
