//! The list of workers, and how they start and stop together.

use crate::bind_status::{self, Watched};
use crate::courier::Equipment;
use crate::dispatch::Dispatcher;
use crate::handsets;
use crate::housekeeping;
use crate::http_client::HttpClient;
use crate::mail::{self, Mailer};
use crate::webhooks;
use heliograph_carrier::carrier::Carrier;
use heliograph_carrier::condition::Condition;
use heliograph_carrier::smsc::simulator::Simulator;
use heliograph_domain::id::CarrierId;
use heliograph_service::context::Context;
use heliograph_service::dispatch::Desks;
use heliograph_service::events::Couriers;
use heliograph_service::writer::Writer;
use std::sync::Arc;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;

/// What the workers need.
pub struct Engine {
    /// For the rules.
    pub context: Context,
    /// The way to the database's writer.
    pub writer: Writer,
    /// Where accepted messages are handed over.
    pub desks: Desks,
    /// Where webhooks are handed over.
    pub couriers: Couriers,
    /// The carriers to serve.
    pub carriers: Vec<Served>,
    /// The simulated SMSC of this node.
    pub simulator: Simulator,
    /// The way to a mail server, if there is one.
    pub mailer: Option<Mailer>,
}

/// A carrier to serve.
pub struct Served {
    /// Its number in the tables.
    pub id: CarrierId,
    /// What the operator calls it.
    pub name: String,
    /// What speaks to it.
    pub carrier: Box<dyn Carrier>,
    /// Parts that it takes without having answered.
    pub window: usize,
}

/// POSTs to webhook endpoints that may be under way at once: half of the open files that a process usually has.
const SOCKETS: usize = 512;

/// Messages that are leased ahead for a carrier with this window: a crash can double at most so many.
const fn claim_ahead(window: usize) -> usize {
    let twice = window.saturating_mul(2);
    if twice > 32 { twice } else { 32 }
}

/// Runs all workers until `stop` turns true and each has given back what it held.
pub async fn run(engine: Engine, stop: watch::Receiver<bool>) {
    let Engine { context, writer, desks, couriers, carriers, simulator, mailer } = engine;
    let mut workers = JoinSet::new();
    let (bell, mut lines) = (Arc::new(Notify::new()), Vec::new());
    for Served { id, name, carrier, window } in carriers {
        let condition = Arc::new(Condition::new(bell.clone()));
        lines.push(Watched { carrier: id, window, condition: condition.clone() });
        let with = (&context, &writer, &desks);
        let (dispatcher, line) =
            Dispatcher::new((id, name), claim_ahead(window), with, condition, &stop);
        workers.spawn(carrier.run(line));
        workers.spawn(dispatcher.run());
    }
    workers.spawn(bind_status::run(context.clone(), lines, bell, stop.clone()));
    let client = HttpClient::new(context.resolver.clone());
    let sockets = Arc::new(Semaphore::new(SOCKETS));
    let equipment = Equipment {
        context: context.clone(),
        writer: writer.clone(),
        couriers,
        client,
        sockets,
        stop: stop.clone(),
    };
    workers.spawn(webhooks::run(equipment));
    workers.spawn(handsets::run(context.clone(), simulator, stop.clone()));
    if let Some(mailer) = mailer {
        workers.spawn(mail::run(context.clone(), mailer, stop.clone()));
    }
    workers.spawn(housekeeping::run(context, writer, stop));
    while let Some(ended) = workers.join_next().await {
        if let Err(e) = ended {
            tracing::error!(error = %e, "a worker ended badly");
        }
    }
}
