//! The pages of operators: carriers, queue and accounts.

use crate::support::site::Site;
use heliograph_domain::carrier::BindStatus;
use heliograph_domain::money::Amount;
use heliograph_service::identity::sessions::SessionOrigin;
use heliograph_service::identity::{accounts, magic_links, mails};
use heliograph_service::operations::{carriers, nodes};
use heliograph_testing::CARRIER;
use insta::assert_snapshot;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn carriers_have_a_status() {
    let site = Site::new().await;
    let olga = site.operator("olga@example.com").await;
    let names = [CARRIER.to_owned()];
    let carrier = nodes::carrier_ids(&site.cx().db, &names).await.unwrap().0[0];
    let last_error = Some(("bind failed: timeout".to_owned(), site.cx().db.now()));
    let status = BindStatus {
        carrier,
        binds: 2,
        bound: 1,
        window: 10,
        unanswered: 4,
        throttled: true,
        last_error,
    };
    carriers::save_status(site.cx(), &[status]).await.unwrap();
    assert_snapshot!(olga.get("/operator/carriers").await.main(), @"
    200
    Carriers
    Connections to SMSCs, as last reported by each node. Updates every 5 seconds.
    acme
    Partially bound
    Node | Binds | Window | Rate limit | Last error | Reported
    Node 1 | 1 of 2 bound | 4 of 10 in flight | Throttled by the SMSC | bind failed: timeout / DATE | DATE
    simulated
    Not configured
    No node is configured for this carrier. Its queued messages wait until one is configured.
    ");
    site.db.clock.advance(Duration::from_secs(61));
    let stale = olga.get("/operator/carriers").await;
    assert_snapshot!(stale.part("id=\"carriers\""), @"
    200
    acme
    Not configured
    Node | Binds | Window | Rate limit | Last error | Reported
    Node 1 | 1 of 2 bound | 4 of 10 in flight | Throttled by the SMSC | bind failed: timeout / DATE | Offline DATE
    simulated
    Not configured
    No node is configured for this carrier. Its queued messages wait until one is configured.
    ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_queue_has_lanes() {
    let site = Site::new().await;
    let olga = site.operator("olga@example.com").await;
    assert_snapshot!(olga.get("/operator/queue").await.main(), @"
    200
    Queue
    Messages waiting to be sent, by carrier and lane. The queue is stored in the database and survives restarts.
    Waiting | 0 | due now
    Oldest | – | longest wait
    Scheduled | 0 | retries and scheduled messages
    Queue is empty
    No messages are waiting to be sent.
    ");
    olga.go_live(Amount(1_000)).await;
    olga.send_text("+447700900123", "Your order is on its way").await;
    site.db.clock.advance(Duration::from_secs(90));
    assert_snapshot!(olga.get("/operator/queue").await.part("id=\"queue\""), @"
    200
    Waiting | 1 | due now
    Oldest | 1 min | longest wait
    Scheduled | 0 | retries and scheduled messages
    Carrier | Lane | Waiting | Scheduled | Oldest
    acme | Single messages | 1 | 0 | 1 min
    ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_gets_credit() {
    let site = Site::new().await;
    let olga = site.operator("olga@example.com").await;
    site.owner("ann@example.com").await;
    let page = olga.get("/operator/accounts?find=ann").await;
    assert_snapshot!(page.main(), @"
    200
    Accounts
    All accounts on this installation.
    Search accounts
    [ann]
    (Search)
    Clear
    ann@example.com ID 2 0.0000 EUR
    Add credit
    Amount in EUR []
    Note []
    (Add credit)
    Members
    Created DATE
    ann@example.com owner
    (Create sign-in link for ann@example.com)
    (End sessions of ann@example.com)
    Limits
    Leave a field empty for the default; 0 means no limit.
    API requests per second of each key []
    Open dashboard pages with live updates []
    Webhook endpoints in each mode []
    Test messages per day []
    Invitations per day []
    Emails per day []
    Stored test messages and opt-outs []
    (Save limits)
    ");
    let credit = page.action("/credit");
    let mark = format!("action=\"{credit}\"");
    let note = "n".repeat(201);
    let typed = [("amount", "10,5"), ("note", note.as_str())];
    let refused = olga.send(&page, &credit, &typed).await.part(&mark);
    assert_snapshot!(refused.replace(&note, "n…"), @"
    422
    Add credit
    Amount in EUR [10,5]
    ✗ '10,5' is not a valid amount: write it with a decimal point and without separators, like 1250.00 (at most six decimals).
    Note […]
    ✗ The note must not exceed 200 characters.
    (Add credit)
    ");
    let zero = olga.send(&page, &credit, &[("amount", "0")]).await;
    assert_snapshot!(zero.part(&mark), @"
    422
    Add credit
    Amount in EUR [0]
    ✗ Enter an amount other than zero.
    Note []
    (Add credit)
    ");
    let debit = olga.send(&page, &credit, &[("amount", "-1")]).await;
    assert_snapshot!(debit.part(&mark), @"
    422
    Add credit
    Amount in EUR [-1]
    ✗ Insufficient balance: the balance of an account cannot be negative.
    Note []
    (Add credit)
    ");
    let typed = [("amount", "10.50"), ("note", "Invoice 7")];
    let credited = olga.send(&page, &credit, &typed).await;
    assert_snapshot!(credited.head(), @"303 /operator/accounts?find=ann&credited=2&amount=10.5000");
    let credited = olga.follow(&credited).await;
    assert_snapshot!(credited.notice(), @"200 10.5000 EUR added to ann@example.com (#2). The balance is 10.5000 EUR.");
    let other = olga.send(&page, &credit, &[("amount", "11")]).await;
    assert_snapshot!(other.part(&mark), @"
    422
    Add credit
    Amount in EUR [11]
    ✗ This form was already submitted with another amount. Check the balance, then submit it again.
    Note []
    (Add credit)
    ");
    assert_snapshot!(olga.get("/operator/accounts?find=nobody").await.part("class=\"empty\""), @"
    200
    No matching account
    Search by account ID, or by part of an account name or of a member's email address.
    ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_creates_a_sign_in_link() {
    let site = Site::new().await;
    let olga = site.operator("olga@example.com").await;
    site.owner("ann@example.com").await;
    let page = olga.get("/operator/accounts?find=ann").await;
    let created = olga.send(&page, &page.action("/link"), &[]).await;
    assert_snapshot!(created.section("made"), @"
    200
    Sign-in link for ann@example.com
    ()
    http://localhost/sign-in/…
    Copy this link now: it is shown only once and works once.
    ");
    let link = created.content("link").replace("http://localhost", "");
    assert_snapshot!(site.client().get(&link).await.head(), @"200 sets heliograph-form");
    let invalid = olga.send(&page, &page.action("/link"), &[("user", "x")]).await;
    assert_snapshot!(invalid.head(), @"400");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_users_do_not_find_the_pages() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    for page in ["carriers", "queue", "accounts"] {
        assert_eq!(ann.get(&format!("/operator/{page}")).await.status, 404, "{page}");
    }
    for action in ["credit", "link", "end-sessions"] {
        let refused = ann.submit(&format!("/operator/accounts/1/{action}"), &[]).await;
        assert_eq!(refused.status, 404, "{action}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_ends_the_sessions_of_a_person() {
    let site = Site::new().await;
    let olga = site.operator("olga@example.com").await;
    let ann = site.owner("ann@example.com").await;
    let page = olga.get("/operator/accounts?find=ann").await;
    let ended = olga.send(&page, &page.action("/end-sessions"), &[]).await;
    assert_snapshot!(
        olga.follow(&ended).await.notice(),
        @"200 All sessions of the person were ended, and unused links no longer work."
    );
    assert_snapshot!(ann.get("/overview").await.head(), @"303 /sign-in?next=%2Foverview");
    let ann = site.sign_in("ann@example.com").await;
    let log = ann.get("/settings/audit-log").await;
    assert!(log.has("Sessions ended by the operator"), "{}", log.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_need_two_factor_authentication_where_it_is_set() {
    let site = Site::with(|settings| settings.operator_two_factor = true).await;
    let olga = site.operator("olga@example.com").await;
    assert_snapshot!(olga.get("/operator/queue").await.head(), @"303 /settings/security");
    let ann = site.owner("ann@example.com").await;
    assert_eq!(ann.get("/overview").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_are_reminded_of_the_demo_operator() {
    let banner = "aria-label=\"Demo operator\"";
    let trial = Site::new().await;
    assert!(!trial.operator(accounts::DEMO).await.get("/overview").await.has(banner));
    let site = Site::with(|settings| settings.live_carriers = true).await;
    site.operator(accounts::DEMO).await;
    let olga = site.operator("olga@example.com").await;
    assert_snapshot!(olga.get("/overview").await.part(banner), @"
    200
    The demo operator still exists. Make your own person an operator, then run heliograph account demote --email demo@localhost.
    ");
    let ann = site.owner("ann@example.com").await;
    assert!(!ann.get("/overview").await.has(banner));
    accounts::demote_operator(site.cx(), accounts::DEMO).await.unwrap();
    assert!(!olga.get("/overview").await.has(banner));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_told_about_a_link_of_the_operator() {
    let site = Site::new().await;
    let olga = site.operator("olga@example.com").await;
    let ann = site.owner("ann@example.com").await;
    let user = ann.user().await.details.session.user;
    let account = ann.user().await.details.session.account;
    let actor = olga.user().await.operator_actor(account, "192.0.2.9");
    let (_, link) = magic_links::create_for_member(site.cx(), &actor, user).await.unwrap();
    let mail = mails::due(site.cx()).await.unwrap().pop().unwrap();
    assert_eq!(mail.recipient, "ann@example.com");
    let (subject, body) = mails::subject_and_body(&mail);
    assert_eq!(subject, "The operator created a sign-in link for you");
    assert!(body.contains("without a password or two-factor code"), "{body}");
    assert!(!body.contains(link.reveal()), "the mail does not contain the link");
    let origin = SessionOrigin { address: "192.0.2.9".to_owned(), agent: "x".to_owned() };
    let session = magic_links::sign_in(site.cx(), &link, &origin).await.unwrap();
    let as_ann = site.client().with_session(&session);
    assert_snapshot!(as_ann.get("/overview").await.part("aria-label=\"Session\""), @"
    200
    Signed in as ann@example.com with a sign-in link that the operator created. The audit log records it.
    ");
    assert!(!ann.get("/overview").await.has("aria-label=\"Session\""));
    let log = ann.get("/settings/audit-log").await.main();
    assert!(
        log.contains("olga@example.com | Sign-in link created / ann@example.com | 192.0.2.9"),
        "{log}"
    );
    assert!(log.contains("Signed in / by sign-in link of the operator | 192.0.2.9"), "{log}");
}
