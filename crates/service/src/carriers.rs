//! Carriers: how the lines to them are and what waits for them, as an operator sees it.

use crate::context::Context;
use crate::error::Result;
use heliograph_domain::carrier::BindStatus;
use heliograph_domain::id::{CarrierId, NodeId};
use heliograph_domain::lease::Lane;
use heliograph_domain::time::Timestamp;
pub use heliograph_store::queue::Waiting;
use heliograph_store::{bind_status, carriers, queue};
use std::time::Duration;

/// How long after it last wrote a node counts as one that is there.
const THERE: Duration = Duration::from_secs(60);

/// Work of one sort is counted up to this: a longer queue costs no more to look at.
pub const COUNTED: i64 = 10_000;

/// Writes down how this node's lines are.
///
/// # Errors
/// What keeps the database away.
pub async fn report(cx: &Context, all: &[BindStatus]) -> Result<()> {
    let mut tx = cx.db.write().await?;
    bind_status::save(&mut tx, cx.node, all, cx.db.now()).await?;
    Ok(tx.commit().await?)
}

/// Takes away what this node wrote down: it serves no carriers any more, or does not yet.
///
/// # Errors
/// What keeps the database away.
pub async fn leave(cx: &Context) -> Result<()> {
    let mut tx = cx.db.write().await?;
    bind_status::forget(&mut tx, cx.node).await?;
    Ok(tx.commit().await?)
}

/// A carrier that ever had a number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Carrier {
    /// Its number.
    pub id: CarrierId,
    /// What the operator calls it.
    pub name: String,
    /// The nodes that serve it; none when no configuration has it any more.
    pub lines: Vec<Line>,
}

/// A node's line to a carrier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// Whose.
    pub node: NodeId,
    /// How it is.
    pub status: BindStatus,
    /// When that was written down.
    pub at: Timestamp,
    /// The node has not written since: it went without a word.
    pub gone: bool,
}

/// All carriers by name, with the nodes that serve them.
///
/// # Errors
/// What keeps the database away.
pub async fn all(cx: &Context) -> Result<Vec<Carrier>> {
    let mut conn = cx.db.read().await?;
    let mut all = named(carriers::all(&mut conn).await?);
    let now = cx.db.now();
    for (node, status, at) in bind_status::all(&mut conn).await? {
        if let Some(carrier) = all.iter_mut().find(|c| c.id == status.carrier) {
            carrier.lines.push(Line { node, status, at, gone: now.since(at) > THERE });
        }
    }
    Ok(all)
}

fn named(all: Vec<(CarrierId, String)>) -> Vec<Carrier> {
    let carrier = |(id, name)| Carrier { id, name, lines: Vec::new() };
    let mut all: Vec<_> = all.into_iter().map(carrier).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// What waits for each carrier, by its name and by lane; of each sort [`COUNTED`] and one at most are counted.
///
/// # Errors
/// What keeps the database away.
pub async fn queues(cx: &Context) -> Result<Vec<(String, Lane, Waiting)>> {
    let mut conn = cx.db.read().await?;
    let now = cx.db.now();
    let mut queues = Vec::new();
    for Carrier { id, name, .. } in named(carriers::all(&mut conn).await?) {
        for lane in Lane::ALL {
            let waiting = queue::waiting(&mut conn, (id, lane), now, COUNTED + 1).await?;
            queues.push((name.clone(), lane, waiting));
        }
    }
    Ok(queues)
}
