//! Fixtures: the rows that tests begin with, and direct queries.

use heliograph_domain::account::{Mode, Role};
use heliograph_domain::id::{AccountId, CarrierId, Ids, MessageId, NodeId, OptoutListId, UserId};
use heliograph_domain::lease::{LEASE, LeasedMessage};
use heliograph_domain::message::Message;
use heliograph_domain::money::Amount;
use heliograph_domain::optout::OptoutList;
use heliograph_domain::originator::Originator;
use heliograph_domain::phone::Recipient;
use heliograph_domain::text::Encoding;
use heliograph_domain::time::Timestamp;
use heliograph_store::audience::optouts;
use heliograph_store::billing::ledger::{self, AddOutcome, LedgerEntry, LedgerKind};
use heliograph_store::identity::accounts;
use heliograph_store::identity::memberships::{self, Membership};
use heliograph_store::identity::users::{self, NewUser};
use heliograph_store::messaging::messages;
use heliograph_store::messaging::queue::{self, QueueClaim};
use heliograph_store::{Conn, Db, Tx};
use heliograph_testing::{START, TestDb};
use std::time::Duration;

pub(crate) const ACME: CarrierId = CarrierId(1);
pub(crate) const HERE: NodeId = NodeId(1);
pub(crate) const THERE: NodeId = NodeId(2);
pub(crate) const ANN: Recipient = Recipient(447_700_900_123);
pub(crate) const BOB: Recipient = Recipient(6_598_234_567);

/// Returns a time in seconds after the beginning of the test.
pub(crate) fn at(seconds: u64) -> Timestamp {
    START.after(Duration::from_secs(seconds))
}

/// Opens an account with this available balance.
pub(crate) async fn account(db: &TestDb, email: &str, amount: i64) -> AccountId {
    let mut tx = db.db.write().await.unwrap();
    let account = open_account(db, &mut tx, email).await.unwrap();
    create_default_lists(db, &mut tx, account).await.unwrap();
    tx.commit().await.unwrap();
    if amount > 0 {
        assert!(credit(db, account, amount).await);
    }
    account
}

/// Opens an account with an owner, whose email address it is named after.
pub(crate) async fn open_account(
    db: &TestDb,
    tx: &mut Conn,
    email: &str,
) -> heliograph_store::StoreResult<AccountId> {
    let id = UserId(db.ids.next(START));
    let new = NewUser {
        id,
        email: email.to_owned(),
        operator: false,
        created_at: START,
        confirmed_at: None,
    };
    assert!(users::insert(tx, &new).await?, "the email address is taken");
    let account = accounts::insert(tx, email, "EUR", START).await?;
    memberships::insert(tx, &Membership { user: id, account, role: Role::Owner }).await?;
    Ok(account)
}

/// Creates the default opt-out lists of an account.
pub(crate) async fn create_default_lists(
    db: &TestDb,
    tx: &mut Tx,
    account: AccountId,
) -> heliograph_store::StoreResult<()> {
    for mode in [Mode::Live, Mode::Test] {
        let id = OptoutListId(db.ids.next(START));
        let (name, standard, created_at) = ("default".to_owned(), true, START);
        let list = OptoutList { id, account, mode, name, standard, created_at };
        optouts::create_list(tx, &list).await?;
    }
    Ok(())
}

pub(crate) async fn credit(db: &TestDb, account: AccountId, amount: i64) -> bool {
    let entry = LedgerEntry {
        id: db.ids.next(START),
        account,
        kind: LedgerKind::Credit,
        amount: Amount(amount),
        note: "thanks".to_owned(),
        at: START,
    };
    let mut tx = db.db.write().await.unwrap();
    let done = ledger::add(&mut tx, &entry).await.unwrap() == AddOutcome::Added;
    if done {
        tx.commit().await.unwrap();
    }
    done
}

/// Returns the balance of an account: available and reserved.
pub(crate) async fn balance(db: &Db, account: AccountId) -> (i64, i64) {
    let all = accounts::all(&mut db.read().await.unwrap()).await.unwrap();
    let found = all.into_iter().find(|a| a.id == account).unwrap();
    (found.available.0, found.reserved.0)
}

/// Returns a message of one part that is due at once and costs 100.
pub(crate) fn message(db: &TestDb, account: AccountId) -> Message {
    Message {
        id: MessageId(db.ids.next(START)),
        account,
        mode: Mode::Live,
        api_key: None,
        sent_by: None,
        campaign: None,
        recipient: ANN,
        originator: "Shop".parse::<Originator>().unwrap(),
        text: "Hello".to_owned(),
        reference: None,
        encoding: Encoding::Gsm7,
        parts: 1,
        part_price: Amount(100),
        carrier: ACME,
        optout_list: None,
        accepted_at: START,
        scheduled_for: None,
        expires_at: at(3_600),
    }
}

/// Stores messages and queues them without an owner.
pub(crate) async fn queued(db: &TestDb, all: &[Message]) {
    let mut tx = db.db.write().await.unwrap();
    messages::insert(&mut tx, &all.iter().collect::<Vec<_>>()).await.unwrap();
    let rows: Vec<_> = all.iter().map(|m| (m, None)).collect();
    queue::insert(&mut tx, &rows, START).await.unwrap();
    tx.commit().await.unwrap();
}

/// Returns a claim of `node` at `now`.
pub(crate) fn queue_claim(node: NodeId, now: Timestamp, limit: usize) -> QueueClaim {
    QueueClaim { node, carrier: ACME, now, now_for_own: now, until: now.after(LEASE), limit }
}

/// Claims in its own transaction.
pub(crate) async fn claim(db: &Db, wanted: QueueClaim) -> Vec<LeasedMessage> {
    let mut tx = db.write().await.unwrap();
    let (found, _) = queue::claim(&mut tx, &wanted).await.unwrap();
    tx.commit().await.unwrap();
    found
}
