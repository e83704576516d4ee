//! Test of a full disk: the whole transaction is rolled back, and everything works again when there
//! is space.
//!
//! A limit on the file size stands for the full disk, because any user may set one. The limit
//! cannot be lifted, so a child process does the writing: the same test with an environment
//! variable.

use crate::fixtures::{account, balance, create_default_lists, open_account};
use heliograph_domain::id::{AccountId, Ids};
use heliograph_store::identity::accounts;
use heliograph_store::operations::carriers;
use heliograph_store::operations::check;
use heliograph_store::{Db, Options, StoreError};
use heliograph_testing::{START, TestClock, TestDb, sealing_key};
use std::process::Command;
use std::sync::Arc;

/// The variable that names the file to the child.
const CHILD: &str = "HELIOGRAPH_FULL_DISK_CHILD";
/// A long name, so that the limit is soon reached.
const FILLER: usize = 20_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_rolls_back_the_whole_transaction() {
    let db = TestDb::sqlite().await;
    if let Ok(url) = std::env::var(CHILD) {
        return fill(url, &db).await;
    }
    let ann = account(&db, "ann@example.com", 100).await;
    let TestDb { db, clock, url, .. } = db;
    drop(db);
    let written = child(&url);
    assert!(written > 0, "the child wrote nothing");
    let db = open(url, clock).await;
    let all = carriers::list(&mut db.read().await.unwrap()).await.unwrap();
    assert_eq!(all.len(), written);
    assert_eq!(balance(&db, ann).await, (100, 0));
    let mut snapshot = db.snapshot().await.unwrap();
    assert_eq!(check::violations(&mut snapshot).await.unwrap(), [""; 0]);
    let mut tx = db.write().await.unwrap();
    carriers::get_or_create(&mut tx, "after").await.unwrap();
    tx.commit().await.unwrap();
}

async fn open(url: String, clock: Arc<TestClock>) -> Db {
    Db::open(Options { url, connections: 1, key: sealing_key(), clock }).await.unwrap()
}

/// Runs this test in a process that may write only small files and returns the number of
/// transactions it committed.
fn child(url: &str) -> usize {
    // 4,000 blocks of 512 bytes. Without the signal, a write beyond the limit just fails.
    let script = "trap '' XFSZ; ulimit -f 4000; exec \"$0\" --exact --nocapture \"$1\"";
    let child = Command::new("sh")
        .args(["-c", script, std::env::current_exe().unwrap().to_str().unwrap()])
        .arg("full_disk::a_full_disk_rolls_back_the_whole_transaction")
        .env(CHILD, url)
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(child.status.success(), "{output}{}", String::from_utf8_lossy(&child.stderr));
    let written = output.lines().find_map(|l| l.split_once("WRITTEN ")).expect(&output);
    written.1.trim().parse().unwrap()
}

/// Writes until the limit is reached.
async fn fill(url: String, other: &TestDb) {
    let db = open(url, other.clock.clone()).await;
    // The ids of a test count up, and the parent has used the first ones.
    for _ in 0..10 {
        let _used_by_the_parent = other.ids.next(START);
    }
    for written in 0..1_000 {
        let name = format!("{written:0FILLER$}");
        let mut tx = db.write().await.unwrap();
        let made = async {
            carriers::get_or_create(&mut tx, &name).await?;
            let account = open_account(other, &mut tx, &name).await?;
            create_default_lists(other, &mut tx, account).await?;
            tx.commit().await
        };
        match made.await {
            Ok(()) => {}
            Err(StoreError::Unavailable(_)) => return after_refusal(&db, written).await,
            Err(e) => panic!("a full disk must be Unavailable, not {e:?}"),
        }
    }
    panic!("the limit was not reached");
}

#[expect(clippy::print_stdout, reason = "the parent reads it")]
async fn after_refusal(db: &Db, written: usize) {
    // Reads still work and show nothing of the failed transaction.
    let mut conn = db.read().await.unwrap();
    assert_eq!(carriers::list(&mut conn).await.unwrap().len(), written);
    assert_eq!(accounts::all(&mut conn).await.unwrap().len(), written + 1);
    assert_ne!(accounts::all(&mut conn).await.unwrap()[0].id, AccountId(0));
    println!("WRITTEN {written}");
}
