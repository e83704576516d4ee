//! The rows that tests begin with, and a look at rows behind the store's back.

use crate::support::{BEGIN, TestDb};
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, CarrierId, Ids, MessageId, NodeId, OptoutListId, UserId};
use heliograph_domain::lease::{LEASE, Leased};
use heliograph_domain::message::Message;
use heliograph_domain::money::Amount;
use heliograph_domain::optout::OptoutList;
use heliograph_domain::originator::Originator;
use heliograph_domain::phone::Recipient;
use heliograph_domain::text::Encoding;
use heliograph_domain::time::Timestamp;
use heliograph_store::ledger::{self, Added, Entry, Kind};
use heliograph_store::queue::{self, Claim};
use heliograph_store::{Db, Tx, accounts, messages, optouts};
use std::time::Duration;

pub(crate) const ACME: CarrierId = CarrierId(1);
pub(crate) const HERE: NodeId = NodeId(1);
pub(crate) const THERE: NodeId = NodeId(2);
pub(crate) const ANN: Recipient = Recipient(447_700_900_123);
pub(crate) const BOB: Recipient = Recipient(6_598_234_567);

/// An instant of the test, in seconds after its beginning.
pub(crate) fn at(seconds: u64) -> Timestamp {
    BEGIN.after(Duration::from_secs(seconds))
}

/// An account that holds so much, all of it available.
pub(crate) async fn account(db: &TestDb, email: &str, amount: i64) -> AccountId {
    let user = UserId(db.ids.next(BEGIN));
    let mut tx = db.db.write().await.unwrap();
    let made = accounts::create(&mut tx, (user, email), "EUR", false, BEGIN).await.unwrap();
    let account = made.unwrap();
    lists(db, &mut tx, account).await.unwrap();
    tx.commit().await.unwrap();
    if amount > 0 {
        assert!(credit(db, account, amount).await);
    }
    account
}

/// The lists that every account has.
pub(crate) async fn lists(
    db: &TestDb,
    tx: &mut Tx,
    account: AccountId,
) -> heliograph_store::Result<()> {
    for mode in [Mode::Live, Mode::Test] {
        let id = OptoutListId(db.ids.next(BEGIN));
        let (name, standard, created_at) = ("default".to_owned(), true, BEGIN);
        let list = OptoutList { id, account, mode, name, standard, created_at };
        optouts::make(tx, &list).await?;
    }
    Ok(())
}

pub(crate) async fn credit(db: &TestDb, account: AccountId, amount: i64) -> bool {
    let entry = Entry {
        id: db.ids.next(BEGIN),
        account,
        kind: Kind::Credit,
        amount: Amount(amount),
        note: "thanks",
        at: BEGIN,
    };
    let mut tx = db.db.write().await.unwrap();
    let done = ledger::add(&mut tx, &entry).await.unwrap() == Added::Now;
    if done {
        tx.commit().await.unwrap();
    }
    done
}

/// What an account has: (available, reserved).
pub(crate) async fn balance(db: &Db, account: AccountId) -> (i64, i64) {
    let all = accounts::all(&mut db.read().await.unwrap()).await.unwrap();
    let found = all.into_iter().find(|a| a.id == account).unwrap();
    (found.available.0, found.reserved.0)
}

/// A message of one part, due at once, that costs 100.
pub(crate) fn message(db: &TestDb, account: AccountId) -> Message {
    Message {
        id: MessageId(db.ids.next(BEGIN)),
        account,
        mode: Mode::Live,
        api_key: None,
        campaign: None,
        recipient: ANN,
        country: ANN.country(),
        originator: "Shop".parse::<Originator>().unwrap(),
        text: "Hello".to_owned(),
        reference: None,
        encoding: Encoding::Gsm7,
        parts: 1,
        part_price: Amount(100),
        carrier: ACME,
        optout_list: None,
        accepted_at: BEGIN,
        scheduled_for: None,
        expires_at: at(3_600),
    }
}

/// Stores messages and queues them, free for everyone.
pub(crate) async fn queued(db: &TestDb, all: &[Message]) {
    let mut tx = db.db.write().await.unwrap();
    messages::insert(&mut tx, &all.iter().collect::<Vec<_>>()).await.unwrap();
    let rows: Vec<_> = all.iter().map(|m| (m, None)).collect();
    queue::insert(&mut tx, &rows, BEGIN).await.unwrap();
    tx.commit().await.unwrap();
}

/// What `node` wants at `now`.
pub(crate) fn wish(node: NodeId, now: Timestamp, limit: usize) -> Claim {
    Claim { node, carrier: ACME, now, until: now.after(LEASE), limit }
}

/// Claims in a transaction of its own.
pub(crate) async fn claim(db: &Db, wish: Claim) -> Vec<Leased> {
    let mut tx = db.write().await.unwrap();
    let (found, _) = queue::claim(&mut tx, &wish).await.unwrap();
    tx.commit().await.unwrap();
    found
}

/// What a query says behind the store's back: all columns of each row, as text.
pub(crate) async fn look(db: &TestDb, sql: &str) -> Vec<Vec<String>> {
    let Some(path) = db.url.strip_prefix("sqlite:") else { return look_postgres(db, sql).await };
    let conn = rusqlite::Connection::open(path).unwrap();
    let mut statement = conn.prepare(sql).unwrap();
    let columns = statement.column_count();
    let row = |r: &rusqlite::Row<'_>| (0..columns).map(|i| r.get(i)).collect();
    statement.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap()
}

async fn look_postgres(db: &TestDb, sql: &str) -> Vec<Vec<String>> {
    let connected = tokio_postgres::connect(&db.url, tokio_postgres::NoTls).await;
    let (client, connection) = connected.unwrap();
    let run = async move {
        let rows = client.query(sql, &[]).await.unwrap();
        rows.iter().map(|r| (0..r.len()).map(|i| r.get(i)).collect()).collect()
    };
    let (closed, rows) = tokio::join!(connection, run);
    closed.unwrap();
    rows
}
