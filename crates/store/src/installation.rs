//! What belongs to the installation as a whole: the proof that a node has the key of this database.

use crate::db::Conn;
use crate::error::{Error, Result};
use crate::sealing::Place;

/// The row that says with which key secrets are sealed.
const SEALING: &str = "sealing";
/// What is sealed in it.
const KNOWN: &str = "heliograph";
const PLACE: Place<'static> = Place("installation", &SEALING);

/// Whether secrets are sealed with this node's key, as far as anybody has one.
///
/// # Errors
/// As any read.
pub(crate) async fn is_ours(conn: &mut Conn) -> Result<bool> {
    let sql = "SELECT value FROM installation WHERE name = $1";
    let value = conn.query_one(sql, &[SEALING.into()], |r| r.text(0)).await?;
    let sealer = conn.sealer()?;
    Ok(value.is_some_and(|v| sealer.open(PLACE, &v).is_ok_and(|known| known == KNOWN)))
}

/// Proves that this node has the database's key; the first key that comes is it, and seals what was not sealed yet.
/// Where nobody lives there is nothing to open, and any key is taken.
///
/// # Errors
/// [`Error::WrongKey`], or as any write.
pub async fn prove_key(tx: &mut Conn) -> Result<()> {
    let known = tx.sealer()?.seal(PLACE, KNOWN)?;
    let row = [SEALING.into(), known.as_str().into()];
    let sql =
        "INSERT INTO installation (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    if tx.execute(sql, &row).await? > 0 {
        return seal_endpoints(tx).await;
    }
    let sql =
        "UPDATE installation SET value = $2 WHERE name = $1 AND NOT EXISTS (SELECT 1 FROM users)";
    if is_ours(tx).await? || tx.execute(sql, &row).await? > 0 {
        Ok(())
    } else {
        Err(Error::WrongKey)
    }
}

/// Databases of before there was a key hold the secrets of webhooks as they are.
async fn seal_endpoints(tx: &mut Conn) -> Result<()> {
    let sql = "SELECT id, secret, old_secret FROM endpoints";
    let plain = tx.query(sql, &[], |r| Ok((r.int(0)?, r.text(1)?, r.opt_text(2)?))).await?;
    let sealer = tx.sealer()?;
    for (id, secret, old) in plain {
        let place = Place("endpoints", &id);
        let secret = sealer.seal(place, &secret)?;
        let old = old.map(|old| sealer.seal(place, &old)).transpose()?;
        let sql = "UPDATE endpoints SET secret = $2, old_secret = $3 WHERE id = $1";
        tx.execute(sql, &[id.into(), secret.as_str().into(), old.as_deref().into()]).await?;
    }
    Ok(())
}
