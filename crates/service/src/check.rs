//! The proof that nothing is lost and no balance drifts.

use crate::context::Context;
use crate::error::Result;

/// All that breaks an invariant, one line each; empty when everything holds.
///
/// # Errors
/// What keeps the database away.
pub async fn violations(cx: &Context) -> Result<Vec<String>> {
    let mut tx = cx.db.snapshot().await?;
    Ok(heliograph_store::check::violations(&mut tx).await?)
}
