//! Values of the installation as a whole: the proof that a node has the sealing key of this
//! database.

use crate::db::conn::Conn;
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row;
use crate::db::sealing::{Place, Sealer};
use crate::db::table::{Sql, Table};
use crate::error::{StoreError, StoreResult};

record! {
    /// A row of `installation`.
    struct InstallationRow {
        name: String,
        value: String,
    }
}

const INSTALLATION: Table = Table { name: "installation", key: columns!(InstallationRow: name) };

static VALUE: Sql = Sql::new(|| INSTALLATION.select_one(columns!(InstallationRow: value)));

static INSERT: Sql = Sql::new(|| {
    INSTALLATION.insert_one(InstallationRow::COLUMNS, &[], "ON CONFLICT (name) DO NOTHING")
});

/// The name of the row that holds a sealed value.
const SEALING: &str = "sealing";
/// The value that is sealed in it.
const KNOWN: &str = "heliograph";
const PLACE: Place<'static> = Place(INSTALLATION.name, &SEALING);

/// Returns whether the secrets of this database are sealed with this node's key.
pub(crate) async fn has_our_key(conn: &mut Conn) -> StoreResult<bool> {
    let value: Option<String> = conn.query_one(&VALUE, &[SEALING.into()], row::get).await?;
    let sealer = conn.sealer()?;
    Ok(value.is_some_and(|v| sealer.open(PLACE, &v).is_ok_and(|known| known == KNOWN)))
}

/// Verifies that this node has the sealing key of the database. The first key becomes that key and
/// seals what was not sealed yet. A database without users has nothing to open, so it accepts any
/// key.
///
/// # Errors
/// [`StoreError::WrongKey`] when the node has another key.
pub async fn verify_sealing_key(tx: &mut Conn) -> StoreResult<()> {
    let known = tx.sealer()?.seal(PLACE, KNOWN)?;
    let row = [SEALING.into(), known.as_str().into()];
    if tx.execute(&INSERT, &row).await? > 0 {
        return seal_endpoints(tx).await;
    }
    let update =
        "UPDATE installation SET value = $2 WHERE name = $1 AND NOT EXISTS (SELECT 1 FROM users)";
    if has_our_key(tx).await? || tx.execute(update, &row).await? > 0 {
        Ok(())
    } else {
        Err(StoreError::WrongKey)
    }
}

/// Proves that the secrets are sealed with the key of `sealer` from now on.
pub(crate) async fn replace_proof(tx: &mut Conn, sealer: &Sealer) -> StoreResult<()> {
    let known = sealer.seal(PLACE, KNOWN)?;
    tx.execute(&REPLACE, &[SEALING.into(), known.as_str().into()]).await.map(drop)
}

static REPLACE: Sql = Sql::new(|| INSTALLATION.update_one(columns!(InstallationRow: value)));

/// Seals the webhook secrets of a database that had no key before.
async fn seal_endpoints(tx: &mut Conn) -> StoreResult<()> {
    let sql = "SELECT id, secret, old_secret FROM endpoints";
    let plain: Vec<(i64, String, Option<String>)> =
        tx.query(sql, &[], |r| Ok((r.get()?, r.get()?, r.get()?))).await?;
    let sealer = tx.sealer()?;
    for (id, secret, old) in plain {
        let place = Place("endpoints", &id);
        let secret = sealer.seal(place, &secret)?;
        let old = old.map(|old| sealer.seal(place, &old)).transpose()?;
        let sql = "UPDATE endpoints SET secret = $2, old_secret = $3 WHERE id = $1";
        tx.execute(sql, &[id.into(), secret.value(), old.value()]).await?;
    }
    Ok(())
}
