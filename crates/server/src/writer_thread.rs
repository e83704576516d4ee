//! The thread of a writer (group commit).

use heliograph_service::group_commit;
use heliograph_service::group_commit::batch::WriterDeps;
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::writer::{self, Writer};
use heliograph_service::messaging::dispatch::DispatchQueues;
use heliograph_service::webhooks::events::DeliveryQueues;
use std::thread::JoinHandle;

/// Starts a writer on a thread of its own: on SQLite its statements block the calling thread, and
/// on PostgreSQL it drives its own connection. The thread ends when the last handle is dropped.
pub(crate) fn start(deps: WriterDeps, inbox: writer::Inbox) -> anyhow::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let body = move || runtime.block_on(group_commit::run::run(deps, inbox));
    Ok(std::thread::Builder::new().name("writer".to_owned()).spawn(body)?)
}

/// Starts a writer without local queues, for one command: other processes take the work that it
/// queues.
pub(crate) fn start_alone(context: &Context) -> anyhow::Result<(Writer, JoinHandle<()>)> {
    let (writer, inbox) = writer::channel();
    let deps = WriterDeps {
        context: Context { db: context.db.with_own_pool()?, ..context.clone() },
        dispatch_queues: DispatchQueues::default(),
        delivery_queues: DeliveryQueues::default(),
    };
    Ok((writer, start(deps, inbox)?))
}
