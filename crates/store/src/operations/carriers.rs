//! The ids that stand for carriers' names in the hot tables.

use crate::db::Conn;
use crate::db::row;
use crate::error::{StoreError, StoreResult};
use heliograph_domain::id::CarrierId;

/// Returns the id of the carrier with this name. A new name gets an id, which it keeps for good.
pub async fn get_or_create(tx: &mut Conn, name: &str) -> StoreResult<CarrierId> {
    // Only new names are inserted: on PostgreSQL every INSERT uses up an id, even when it
    // conflicts.
    if let Some(known) = find(tx, name).await? {
        return Ok(known);
    }
    let insert = "INSERT INTO carriers (name) VALUES ($1) ON CONFLICT (name) DO NOTHING";
    tx.execute(insert, &[name.into()]).await?;
    find(tx, name).await?.ok_or_else(|| StoreError::corrupt("an inserted carrier has no id"))
}

async fn find(tx: &mut Conn, name: &str) -> StoreResult<Option<CarrierId>> {
    tx.query_one("SELECT id FROM carriers WHERE name = $1", &[name.into()], row::get).await
}

/// Returns all carriers that ever had an id, with their names.
pub async fn list(conn: &mut Conn) -> StoreResult<Vec<(CarrierId, String)>> {
    let sql = "SELECT id, name FROM carriers ORDER BY id";
    conn.query(sql, &[], |r| Ok((r.get()?, r.get()?))).await
}
