//! A full disk: the transaction is refused as a whole, and everything works again when there is
//! room.
//!
//! A limit on the size of files stands for the full disk, since any user may set one. It can't be
//! lifted, so a child process does the writing: this very test, told so by its environment.

use crate::rows::{account, at, balance, lists};
use crate::support::{TestClock, TestDb, key, on_sqlite};
use heliograph_domain::id::{AccountId, Ids, UserId};
use heliograph_store::{Db, Error, Options, accounts, carriers, check};
use std::process::Command;
use std::sync::Arc;

/// Names the file to the child.
const CHILD: &str = "HELIOGRAPH_FULL_DISK_CHILD";
/// Longer than any field, so that the limit is soon reached.
const FILLER: usize = 20_000;

#[test]
fn nothing_of_a_refused_transaction_is_stored() {
    if let Ok(url) = std::env::var(CHILD) {
        return on_sqlite(async |other: TestDb| fill(url, &other).await);
    }
    on_sqlite(async |db: TestDb| {
        let ann = account(&db, "ann@example.com", 100).await;
        let TestDb { db, clock, url, .. } = db;
        drop(db);
        let written = child(&url);
        assert!(written > 0, "the child did not get started");
        let db = open(url, clock).await;
        let all = carriers::all(&mut db.read().await.unwrap()).await.unwrap();
        assert_eq!(all.len(), written);
        assert_eq!(balance(&db, ann).await, (100, 0));
        let mut snapshot = db.snapshot().await.unwrap();
        assert_eq!(check::violations(&mut snapshot).await.unwrap(), [""; 0]);
        let mut tx = db.write().await.unwrap();
        carriers::number(&mut tx, "there is room again").await.unwrap();
        tx.commit().await.unwrap();
    });
}

async fn open(url: String, clock: Arc<TestClock>) -> Db {
    Db::open(Options { url, connections: 1, key: key(), clock }).await.unwrap()
}

/// Runs this test in a process that may write only small files; how many transactions it stored.
fn child(url: &str) -> usize {
    // 4,000 blocks of 512 bytes; without its signal, a write that goes too far just fails.
    let script = "trap '' XFSZ; ulimit -f 4000; exec \"$0\" --exact --nocapture \"$1\"";
    let child = Command::new("sh")
        .args(["-c", script, std::env::current_exe().unwrap().to_str().unwrap()])
        .arg("full_disk::nothing_of_a_refused_transaction_is_stored")
        .env(CHILD, url)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(child.status.success(), "{said}{}", String::from_utf8_lossy(&child.stderr));
    let written = said.lines().find_map(|l| l.split_once("WRITTEN ")).expect(&said);
    written.1.trim().parse().unwrap()
}

/// Writes until nothing more fits.
async fn fill(url: String, other: &TestDb) {
    let db = open(url, other.clock.clone()).await;
    for written in 0..1_000 {
        let name = format!("{written:0FILLER$}");
        let mut tx = db.write().await.unwrap();
        let owner = (UserId(other.ids.next(at(1))), name.as_str());
        let made = async {
            carriers::number(&mut tx, &name).await?;
            let account = accounts::create(&mut tx, owner, "EUR", false, at(1)).await?;
            lists(other, &mut tx, account.unwrap()).await?;
            tx.commit().await
        };
        match made.await {
            Ok(()) => {}
            Err(Error::Unavailable(_)) => return after_refusal(&db, written).await,
            Err(e) => panic!("a full disk is no {e:?}"),
        }
    }
    panic!("the limit was not reached");
}

#[expect(clippy::print_stdout, reason = "the parent reads it")]
async fn after_refusal(db: &Db, written: usize) {
    // Reading goes on, and shows nothing of what was refused.
    let mut conn = db.read().await.unwrap();
    assert_eq!(carriers::all(&mut conn).await.unwrap().len(), written);
    assert_eq!(accounts::all(&mut conn).await.unwrap().len(), written + 1);
    assert_ne!(accounts::all(&mut conn).await.unwrap()[0].id, AccountId(0));
    println!("WRITTEN {written}");
}
