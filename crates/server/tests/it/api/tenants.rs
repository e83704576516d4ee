//! Isolation of accounts, and of live and test mode, for every operation in the OpenAPI document.

use crate::support::api::problem;
use crate::support::model::{Operation, TenantModel, Tenants, ids, operations};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Returns all pairs of two different tenants.
fn pairs(all: &[TenantModel]) -> impl Iterator<Item = (&TenantModel, &TenantModel)> {
    let others = move |n| all.iter().enumerate().filter(move |(m, _)| *m != n);
    all.iter()
        .enumerate()
        .flat_map(move |(n, mine)| others(n).map(move |(_, theirs)| (mine, theirs)))
}

#[test]
fn objects_of_other_tenants_are_not_found() {
    let tenants = Tenants::new();
    let (server, before) = (&tenants.server, tenants.shown());
    let with_objects = operations(server).into_iter().filter(|o| o.path.contains('{'));
    let mut tried = 0;
    for operation in with_objects {
        for (mine, theirs) in pairs(&tenants.all) {
            let addresses = theirs.addresses(&operation.path);
            for address in addresses.iter().chain(&mine.mixed(theirs, &operation.path)) {
                let response = mine.ask(server, &operation, address);
                assert_eq!(problem(&response, 404, "not_found"), [], "{address}");
                tried += 1;
            }
        }
        assert_eq!(tenants.shown(), before, "{} {}", operation.method, operation.path);
    }
    assert!(tried >= 200, "only {tried} requests");
    server.check();
}

#[test]
fn lists_contain_one_tenant() {
    let tenants = Tenants::new();
    let server = &tenants.server;
    let lists: Vec<_> = operations(server).into_iter().filter(Operation::is_list).collect();
    assert!(lists.len() >= 4, "only {} lists", lists.len());
    for (list, tenant) in lists.iter().flat_map(|l| tenants.all.iter().map(move |w| (l, w))) {
        let members: BTreeSet<_> = tenant.members(&list.path).into_iter().collect();
        for address in tenant.addresses(&list.path) {
            let found = ids(&tenant.walk(server, &address).0);
            assert_eq!(found.len(), members.len(), "{address}: {found:?}");
            assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), members, "{address}");
            for filter in list.filters() {
                let found = ids(&tenant.walk(server, &format!("{address}{filter}")).0);
                assert!(
                    found.iter().all(|id| members.contains(id)),
                    "{address}{filter}: {found:?}"
                );
            }
        }
    }
    // A cursor of another tenant gives no access to that tenant's items, and a cursor of another
    // list is refused.
    for (list, (mine, theirs)) in
        lists.iter().flat_map(|l| pairs(&tenants.all).map(move |p| (l, p)))
    {
        let members = mine.members(&list.path);
        let other = theirs.addresses(&list.path).remove(0);
        for cursor in theirs.walk(server, &other).1 {
            let address = format!("{}?cursor={cursor}", mine.addresses(&list.path).remove(0));
            let response = mine.ask(server, list, &address);
            if response.status == 400 {
                let refused = [("query:cursor".to_owned(), "invalid_cursor".to_owned())];
                assert_eq!(problem(&response, 400, "invalid_request"), refused, "{address}");
                continue;
            }
            let page = response.json();
            let found = ids(page["data"].as_array().unwrap());
            assert!(found.iter().all(|id| members.contains(id)), "{address}: {found:?}");
        }
    }
}

/// Each tenant sends all changes about its own objects, with the same body and idempotency key.
#[test]
fn changes_of_one_tenant_are_invisible_to_others() {
    let tenants = Tenants::new();
    let server = &tenants.server;
    let mut changes: Vec<_> =
        operations(server).into_iter().filter(|o| o.method != "GET").collect();
    // First operations that create objects, then those that delete them, inner objects first.
    changes.sort_by_key(|o| match &*o.method {
        "DELETE" => (true, Reverse(o.path.len())),
        _ => (false, Reverse(usize::MAX - o.path.len())),
    });
    for operation in &changes {
        let mut before = tenants.shown();
        for (n, tenant) in tenants.all.iter().enumerate() {
            for address in tenant.addresses(&operation.path) {
                change_own(&tenants, tenant, operation, &address);
            }
            let after = tenants.shown();
            for (m, other) in tenants.all.iter().enumerate().filter(|(m, _)| *m != n) {
                let (mut was, mut is) = (before[m].clone(), after[m].clone());
                if other.account == tenant.account {
                    // An account has one balance in both modes.
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

/// Sends a change about an own object, which succeeds or conflicts with the state of the object.
fn change_own(tenants: &Tenants, tenant: &TenantModel, operation: &Operation, address: &str) {
    let response = tenant.ask(&tenants.server, operation, address);
    let done = (200..300).contains(&response.status);
    assert!(done || response.status == 409, "{address}: {}", response.text());
    assert_eq!(response.header("idempotent-replayed"), None, "{address}");
}
