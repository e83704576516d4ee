//! Creating and revoking API keys.

use crate::support::site::Site;
use heliograph_domain::account::Role;
use insta::assert_snapshot;

const KEYS: &str = "/settings/api-keys";
const REVOKE: &str = "/settings/api-keys/revoke";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_shown_once() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get(KEYS).await;
    assert_snapshot!(page.main(), @"
    200
    API keys
    Keys authenticate requests to the API. They do not expire; a revoked key stops working immediately.
    Create API key
    Create API key
    ()
    Name []
    Describe what uses this key.
    Mode
    [x] Test / Messages go to the Phone page and are free
    [ ] Live / Messages go to real phones and are charged to the balance
    Permissions
    [x] Send / Send and cancel messages
    [x] Read / Read messages, replies and balance
    [x] Manage / Manage opt-out lists and stored data
    (Create key)
    Keys
    0
    No API keys yet
    Create a test key first: its messages arrive on the Phone page and are free.
    ");
    let created = ann.send(&page, KEYS, &[("name", "Shop"), ("scope", "send")]).await;
    assert_snapshot!(created.section("new-key"), @r#"
    200
    Key “Shop” created Test
    Copy this key now. You will not be able to see it again.
    ()
    …
    Try the key
    ()
    curl http://localhost/v1/send/sms -H 'Authorization: Bearer …' -H 'Content-Type: application/json' -d '{"originator":"+447700900800","recipient":"+447700900123","text":"Hello, world"}'
    The message arrives on the Phone page.
    "#);
    assert_snapshot!(created.section("keys"), @"
    200
    Keys
    1
    Name | Permissions | Last used | Revoke
    Shop Test hg_test_ilGD… Created DATE | send | Never
    Revoke Shop
    Revoke Shop?
    Apps using this key will stop working immediately.
    ()
    (Revoke)
    ");
    let again = ann.send(&page, KEYS, &[("name", "Shop")]).await;
    assert_snapshot!(
        again.notice(),
        @"200 ✗ This key was already created and shown. If you did not copy it, revoke it and create another."
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_a_new_key_are_at_their_fields() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get(KEYS).await;
    let typed = [("name", " "), ("mode", "live"), ("scope", "")];
    assert_snapshot!(ann.send(&page, KEYS, &typed).await.part("action=\"/settings/api-keys\""), @"
    422
    Name [ ]
    ✗ Enter a name, such as the name of the app.
    Mode
    [ ] Test / Messages go to the Phone page and are free
    [x] Live / Messages go to real phones and are charged to the balance
    Permissions
    [ ] Send / Send and cancel messages
    [ ] Read / Read messages, replies and balance
    [ ] Manage / Manage opt-out lists and stored data
    ✗ Select at least one permission.
    (Create key)
    ");
    let name = "a".repeat(101);
    let typed = [("name", name.as_str()), ("mode", "both")];
    let refused = ann.send(&page, KEYS, &typed).await.part("action=\"/settings/api-keys\"");
    assert_snapshot!(refused.replace(&name, "a…"), @"
    422
    Name […]
    ✗ The name must not exceed 100 characters.
    Mode
    [x] Test / Messages go to the Phone page and are free
    [ ] Live / Messages go to real phones and are charged to the balance
    ✗ Select test or live.
    Permissions
    [x] Send / Send and cancel messages
    [x] Read / Read messages, replies and balance
    [x] Manage / Manage opt-out lists and stored data
    (Create key)
    ");
    assert_snapshot!(ann.post(KEYS, &[("name", "Shop")]).await.head(), @"403");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_key_is_listed_apart() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.fill(KEYS, KEYS, &[("name", "Shop"), ("mode", "live")]).await;
    for _ in 0..2 {
        // The second time, too: the key is revoked.
        let revoked = ann.send(&page, REVOKE, &[]).await;
        assert_eq!(revoked.head(), "303 /settings/api-keys?done=revoked");
    }
    let revoked = ann.get("/settings/api-keys?done=revoked").await;
    assert_snapshot!(
        revoked.notice(),
        @"200 API key revoked. Requests with this key are now rejected."
    );
    assert_snapshot!(revoked.section("keys"), @"
    200
    Keys
    0
    No API keys yet
    Create a test key first: its messages arrive on the Phone page and are free.
    Revoked 1
    Name | Permissions | Last used | Revoked
    Shop Live hg_live_ilGD… Created DATE | send, read, manage | Never | DATE
    ");
    let id = "0190b0a0-6f2e-7c3d-8a41-2b5c9d7e1f30";
    assert_snapshot!(ann.send(&page, REVOKE, &[("id", id)]).await.head(), @"404");
    assert_snapshot!(ann.send(&page, REVOKE, &[("id", "x")]).await.head(), @"400");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_cannot_create_or_revoke_keys() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let key = ann.fill(KEYS, KEYS, &[("name", "Shop")]).await.form(REVOKE);
    let vic = site.member(&ann, "vic@example.com", Role::Viewer).await;
    assert_snapshot!(vic.get(KEYS).await.main(), @"
    200
    API keys
    Keys authenticate requests to the API. They do not expire; a revoked key stops working immediately.
    Keys
    1
    Name | Permissions | Last used | Revoke
    Shop Test hg_test_ilGD… Created DATE | send, read, manage | Never
    ");
    assert_snapshot!(vic.submit(KEYS, &[("name", "Mine")]).await.head(), @"403");
    assert_snapshot!(vic.submit(REVOKE, &[("id", &key[1].1)]).await.head(), @"403");
}
