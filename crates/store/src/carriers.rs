//! The small numbers by which carriers' names stand in the hot tables.

use crate::db::Conn;
use crate::error::{Error, Result};
use heliograph_domain::id::CarrierId;

/// The number of the carrier with this name, given to it now if it had none. A name keeps its number for good.
///
/// # Errors
/// As any write.
pub async fn number(tx: &mut Conn, name: &str) -> Result<CarrierId> {
    // Only a new name is inserted: on PostgreSQL each insert uses up a number, even one that is in vain.
    if let Some(known) = find(tx, name).await? {
        return Ok(known);
    }
    let insert = "INSERT INTO carriers (name) VALUES ($1) ON CONFLICT (name) DO NOTHING";
    tx.execute(insert, &[name.into()]).await?;
    find(tx, name).await?.ok_or_else(|| Error::corrupt("a carrier just named is gone"))
}

async fn find(tx: &mut Conn, name: &str) -> Result<Option<CarrierId>> {
    let sql = "SELECT id FROM carriers WHERE name = $1";
    tx.query_one(sql, &[name.into()], |r| Ok(CarrierId(r.small(0)?))).await
}

/// All carriers that ever had a number.
///
/// # Errors
/// As any read.
pub async fn all(conn: &mut Conn) -> Result<Vec<(CarrierId, String)>> {
    let sql = "SELECT id, name FROM carriers ORDER BY id";
    conn.query(sql, &[], |r| Ok((CarrierId(r.small(0)?), r.text(1)?))).await
}
