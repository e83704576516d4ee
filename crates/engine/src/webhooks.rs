//! Webhooks: sees to it that each endpoint that something waits for has a courier.

use crate::courier::{Courier, Equipment, Orders};
use heliograph_domain::id::EndpointId;
use heliograph_domain::webhook::Endpoint;
use heliograph_service::deliveries;
use heliograph_service::error::Result;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How often the table is looked at even when no bell rang: what other nodes left, and what is due by the clock.
const LOOK: Duration = Duration::from_secs(1);

/// All couriers of this node.
struct Office {
    with: Equipment,
    orders: HashMap<EndpointId, watch::Sender<Orders>>,
    couriers: JoinSet<()>,
}

/// Runs until `stop` turns true and every courier has given back what it held.
pub(crate) async fn run(with: Equipment) {
    let mut stop = with.stop.clone();
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let couriers = with.couriers.clone();
    let mut office = Office { with, orders: HashMap::new(), couriers: JoinSet::new() };
    loop {
        tokio::select! {
            _ = look.tick() => {}
            () = couriers.missed() => {}
            Some(ended) = office.couriers.join_next() => office.on_ended(ended),
            _ = stop.wait_for(|stop| *stop) => break,
        }
        if let Err(error) = office.turn().await {
            tracing::warn!(%error, "webhooks have to wait");
        }
    }
    while office.couriers.join_next().await.is_some() {}
}

impl Office {
    async fn turn(&mut self) -> Result<()> {
        let due: HashMap<EndpointId, bool> =
            deliveries::due(&self.with.context).await?.into_iter().collect();
        let active: Vec<EndpointId> = self.orders.keys().copied().collect();
        for id in active {
            self.instruct(id, due.get(&id).copied()).await?;
        }
        for (id, urgent) in due {
            if !self.orders.contains_key(&id)
                && let Some(endpoint) = deliveries::endpoint(&self.with.context, id).await?
            {
                match endpoint.off.is_some() && !urgent {
                    true => deliveries::withdraw(&self.with.context, id).await?,
                    false => self.engage(endpoint, urgent),
                }
            }
        }
        Ok(())
    }

    /// Tells a courier what is new: of its endpoint, and that something is due.
    async fn instruct(&mut self, id: EndpointId, due: Option<bool>) -> Result<()> {
        let endpoint = deliveries::endpoint(&self.with.context, id).await?;
        let Some(endpoint) = endpoint else {
            // Without orders a courier ends.
            self.orders.remove(&id);
            return Ok(());
        };
        if endpoint.off.is_some() && due == Some(false) {
            deliveries::withdraw(&self.with.context, id).await?;
        }
        let Some(orders) = self.orders.get(&id) else { return Ok(()) };
        let urgent = due == Some(true);
        let known = orders.borrow().clone();
        if due.is_some() || urgent != known.urgent || *known.endpoint != endpoint {
            orders.send_replace(Orders { endpoint: Arc::new(endpoint), urgent });
        }
        Ok(())
    }

    fn engage(&mut self, endpoint: Endpoint, urgent: bool) {
        let id = endpoint.id;
        let orders = watch::Sender::new(Orders { endpoint: Arc::new(endpoint), urgent });
        match Courier::new(self.with.clone(), orders.subscribe()) {
            Some(courier) => {
                self.couriers.spawn(courier.run());
                self.orders.insert(id, orders);
            }
            None => tracing::warn!(endpoint = id.0, "the endpoint's URL can't be read"),
        }
    }

    fn on_ended(&mut self, ended: std::result::Result<(), tokio::task::JoinError>) {
        if let Err(error) = ended {
            tracing::error!(%error, "a courier ended badly");
        }
        self.orders.retain(|_, orders| !orders.is_closed());
    }
}
