//! Whatever the document offers keeps accounts apart, and the live side of each from its test side.

use crate::database::{Engine, each_engine};
use crate::worlds::{Operation, World, Worlds, ids, operations};
use crate::wrong_input::problem;
use std::cmp::Reverse;
use std::collections::BTreeSet;

each_engine!(tenants: things_of_other_worlds_are_not_there lists_show_one_world
    what_one_world_does_no_other_sees);

/// Each world with each other one.
fn pairs(all: &[World]) -> impl Iterator<Item = (&World, &World)> {
    let others = move |n| all.iter().enumerate().filter(move |(m, _)| *m != n);
    all.iter()
        .enumerate()
        .flat_map(move |(n, mine)| others(n).map(move |(_, theirs)| (mine, theirs)))
}

fn things_of_other_worlds_are_not_there(engine: Engine) {
    let worlds = Worlds::new(engine);
    let (server, before) = (&worlds.server, worlds.shown());
    let with_things = operations(server).into_iter().filter(|o| o.path.contains('{'));
    let mut tried = 0;
    for operation in with_things {
        for (mine, theirs) in pairs(&worlds.all) {
            let addresses = theirs.addresses(&operation.path);
            for address in addresses.iter().chain(&mine.mixed(theirs, &operation.path)) {
                let answer = mine.ask(server, &operation, address);
                assert_eq!(problem(&answer, 404, "not_found"), [], "{address}");
                tried += 1;
            }
        }
        assert_eq!(worlds.shown(), before, "{} {}", operation.method, operation.path);
    }
    assert!(tried >= 200, "only {tried} requests");
    server.check();
}

fn lists_show_one_world(engine: Engine) {
    let worlds = Worlds::new(engine);
    let server = &worlds.server;
    let lists: Vec<_> = operations(server).into_iter().filter(Operation::is_list).collect();
    assert!(lists.len() >= 4, "only {} lists", lists.len());
    for (list, world) in lists.iter().flat_map(|l| worlds.all.iter().map(move |w| (l, w))) {
        let members: BTreeSet<_> = world.members(&list.path).into_iter().collect();
        for address in world.addresses(&list.path) {
            let found = ids(&world.walk(server, &address).0);
            assert_eq!(found.len(), members.len(), "{address}: {found:?}");
            assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), members, "{address}");
            for filter in list.filters() {
                let found = ids(&world.walk(server, &format!("{address}{filter}")).0);
                assert!(
                    found.iter().all(|id| members.contains(id)),
                    "{address}{filter}: {found:?}"
                );
            }
        }
    }
    // A cursor is a place in a list and no way into it.
    for (list, (mine, theirs)) in lists.iter().flat_map(|l| pairs(&worlds.all).map(move |p| (l, p)))
    {
        let members = mine.members(&list.path);
        let other = theirs.addresses(&list.path).remove(0);
        for cursor in theirs.walk(server, &other).1 {
            let address = format!("{}?cursor={cursor}", mine.addresses(&list.path).remove(0));
            let page = mine.ask(server, list, &address).json();
            let found = ids(page["data"].as_array().unwrap());
            assert!(found.iter().all(|id| members.contains(id)), "{address}: {found:?}");
        }
    }
}

/// Everybody does everything to what is theirs, in the same words and under the same idempotency key.
fn what_one_world_does_no_other_sees(engine: Engine) {
    let worlds = Worlds::new(engine);
    let server = &worlds.server;
    let mut changes: Vec<_> =
        operations(server).into_iter().filter(|o| o.method != "GET").collect();
    // First what makes things, then what removes them, the inner ones first.
    changes.sort_by_key(|o| match &*o.method {
        "DELETE" => (true, Reverse(o.path.len())),
        _ => (false, Reverse(usize::MAX - o.path.len())),
    });
    for operation in &changes {
        let mut before = worlds.shown();
        for (n, world) in worlds.all.iter().enumerate() {
            for address in world.addresses(&operation.path) {
                own(&worlds, world, operation, &address);
            }
            let after = worlds.shown();
            for (m, other) in worlds.all.iter().enumerate().filter(|(m, _)| *m != n) {
                let (mut was, mut is) = (before[m].clone(), after[m].clone());
                if other.account == world.account {
                    // Both sides of an account have one balance.
                    was.remove("/v1/balance");
                    is.remove("/v1/balance");
                }
                assert_eq!(is, was, "{} {}", operation.method, operation.path);
            }
            before = after;
        }
    }
    server.check();
}

/// Does something to a thing of one's own; it is possible, or the thing itself is against it.
fn own(worlds: &Worlds, world: &World, operation: &Operation, address: &str) {
    let answer = world.ask(&worlds.server, operation, address);
    let done = (200..300).contains(&answer.status);
    assert!(done || answer.status == 409, "{address}: {}", answer.text());
    assert_eq!(answer.header("idempotent-replayed"), None, "{address}");
}
