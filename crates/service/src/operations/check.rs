//! The check of the database invariants: no message is lost and no balance drifts.

use crate::kernel::context::Context;
use crate::kernel::error::Result;
use async_recursion::async_recursion as boxed;

/// Returns one line for each violated invariant; empty when all hold.
#[boxed]
pub async fn violations(cx: &Context) -> Result<Vec<String>> {
    let mut tx = cx.db.snapshot().await?;
    Ok(heliograph_store::operations::check::violations(&mut tx).await?)
}
