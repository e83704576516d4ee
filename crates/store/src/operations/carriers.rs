//! The ids that stand for carriers' names in the hot tables.

use crate::db::Conn;
use crate::db::record::{Record, columns, record};
use crate::db::row;
use crate::db::table::{Sql, Table, names};
use crate::error::{StoreError, StoreResult};
use heliograph_domain::id::CarrierId;

record! {
    /// A row of `carriers`.
    struct CarrierRow {
        id: CarrierId,
        name: String,
    }
}

const CARRIERS: Table = Table { name: "carriers", key: columns!(CarrierRow: id) };

static INSERT: Sql = Sql::new(|| {
    CARRIERS.insert_one(columns!(CarrierRow: name), &[], "ON CONFLICT (name) DO NOTHING")
});

/// Returns the id of the carrier with this name. A new name gets an id, which it keeps for good.
pub async fn get_or_create(tx: &mut Conn, name: &str) -> StoreResult<CarrierId> {
    // Only new names are inserted: on PostgreSQL every INSERT uses up an id, even when it
    // conflicts.
    if let Some(known) = find(tx, name).await? {
        return Ok(known);
    }
    tx.execute(&INSERT, &[name.into()]).await?;
    find(tx, name).await?.ok_or_else(|| StoreError::corrupt("an inserted carrier has no id"))
}

static FIND: Sql =
    Sql::new(|| CARRIERS.select_by(columns!(CarrierRow: name), columns!(CarrierRow: id), ""));

async fn find(tx: &mut Conn, name: &str) -> StoreResult<Option<CarrierId>> {
    tx.query_one(&FIND, &[name.into()], row::get).await
}

static LIST: Sql =
    Sql::new(|| format!("SELECT {} FROM carriers ORDER BY id", names(CarrierRow::COLUMNS)));

/// Returns all carriers that ever had an id, with their names.
pub async fn list(conn: &mut Conn) -> StoreResult<Vec<(CarrierId, String)>> {
    conn.query(&LIST, &[], |r| {
        let CarrierRow { id, name } = r.record()?;
        Ok((id, name))
    })
    .await
}
