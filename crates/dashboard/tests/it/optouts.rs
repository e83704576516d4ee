//! Opt-out lists: numbers, imports and exports.

use crate::support::html;
use crate::support::site::Site;
use axum::body::Body;
use axum::extract::Request;
use heliograph_domain::account::Role;
use insta::assert_snapshot;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_is_added_found_and_removed() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get("/optouts").await;
    assert_snapshot!(page.main(), @"
    200
    Opt-outs
    People who opted out of your messages. Replies of STOP and START update this list automatically.
    Import
    Import numbers
    ()
    Numbers []
    One per line, or separated by commas. Numbers already on the list are left unchanged.
    Or upload a file []
    CSV or text, up to 16 MB. Columns: “number” or “phone”, and optionally “note”.
    (Import)
    Add number
    Add a number
    ()
    Number []
    Include the country code: +44 7700 900123.
    (Add number)
    default Default Test
    Create list
    Create another list
    ()
    Name []
    A message or campaign can use this list instead of the default.
    (Create list)
    Search by number
    []
    (Search)
    No opt-outs yet
    Replies of STOP are added automatically. You can also add or import existing opt-outs.
    ");
    let (add, remove) = (page.action("/add"), page.action("/add").replace("/add", "/remove"));
    let wrong = ann.send(&page, &add, &[("number", "07700")]).await;
    assert_snapshot!(wrong.part(&format!("action=\"{add}\"")), @"
    422
    Number [07700]
    ✗ The country code is missing: replace a leading 0 with it, or remove a leading 00.
    (Add number)
    ");
    let added = ann.send(&page, &add, &[("number", "+44 7700 900123")]).await;
    let added = ann.follow(&added).await;
    assert_snapshot!(added.notice(), @"200 Number added to the list.");
    assert_snapshot!(added.section("list"), @"
    200
    default Default Test
    Create list
    Create another list
    ()
    Name []
    A message or campaign can use this list instead of the default.
    (Create list)
    Search by number
    []
    (Search)
    Number | Source | Opted out | Remove
    +447700900123 | Added by ann@example.com | DATE
    Remove 447700900123
    Remove 447700900123?
    Messages to this number will be allowed again.
    ()
    (Remove)
    ");
    let again = ann.send(&page, &add, &[("number", "+447700900123")]).await;
    assert_snapshot!(
        ann.follow(&again).await.notice(),
        @"200 This number is already on the list. Its original entry was kept."
    );
    let list = add.trim_end_matches("/add");
    let found = async |number| ann.get(&format!("{list}?number={number}")).await;
    assert_snapshot!(found("447700900124").await.part("class=\"empty\""), @"
    200
    Not on this list
    This number has not opted out.
    ");
    assert_snapshot!(
        found("12").await.error("q"),
        @"200 ✗ The number has too few digits: write it in full, with its country and area code."
    );
    let removed = ann.send(&added, &remove, &[]).await;
    assert_snapshot!(
        ann.follow(&removed).await.notice(),
        @"200 Number removed. Messages to it are allowed again."
    );
    assert_snapshot!(ann.send(&added, &remove, &[]).await.head(), @"404");
    assert_snapshot!(ann.send(&added, &remove, &[("number", "x")]).await.head(), @"400");
    assert_snapshot!(ann.get("/optouts/x").await.head(), @"404");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_are_imported_and_exported() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get("/optouts").await;
    let import = page.action("/import");
    let nothing = ann.send(&page, &import, &[("numbers", " ")]).await;
    assert_snapshot!(nothing.part(&format!("action=\"{import}\"")), @"
    422
    Numbers [ ]
    ✗ Enter at least one number, or select a file.
    Or upload a file []
    CSV or text, up to 16 MB. Columns: “number” or “phone”, and optionally “note”.
    (Import)
    ");
    let typed = [("numbers", "+447700900123, 0770\n+6598234567\nhello\n+447700900123")];
    let imported = ann.send(&page, &import, &typed).await;
    assert_snapshot!(imported.notice(), @"200 ✗ Numbers added: 2. Already on the list: 1. Invalid numbers: 2; see below.");
    assert_snapshot!(imported.section("list"), @"
    200
    default Default Test
    Create list
    Create another list
    ()
    Name []
    A message or campaign can use this list instead of the default.
    (Create list)
    Search by number
    []
    (Search)
    Number | Source | Opted out | Remove
    +6598234567 | Imported | DATE
    Remove 6598234567
    Remove 6598234567?
    Messages to this number will be allowed again.
    ()
    (Remove)
    +447700900123 | Imported | DATE
    Remove 447700900123
    Remove 447700900123?
    Messages to this number will be allowed again.
    ()
    (Remove)
    ");
    assert_snapshot!(imported.part("notice-warn"), @"
    200
    Invalid numbers that were not added: 2.
    Line 1: “0770”: the country code is missing: replace a leading 0 with it, or remove a leading 00
    Line 3: “hello”: 'h' is not allowed in a phone number: use the international format, like +447700900123
    ");
    let file = upload(&page.form(&import)[0].1, "number,note\n+447700900124,=by phone\n");
    let request = Request::post(&import).header("content-type", file.0);
    let uploaded = ann.request(request.body(Body::from(file.1)).unwrap()).await;
    assert_snapshot!(uploaded.notice(), @"200 Numbers added: 1. Already on the list: 0.");
    let exported = ann.get(&import.replace("/import", "/export")).await;
    assert_snapshot!(
        exported.header("content-disposition"),
        @r#"attachment; filename="opt-outs.csv""#
    );
    assert_snapshot!(html::stable(&exported.body), @"
    number,note,source,at,originator
    +6598234567,,import,DATE,
    +447700900123,,import,DATE,
    +447700900124,'=by phone,import,DATE,
    ");
    let missing = "/optouts/0190b0a0-6f2e-7c3d-8a41-2b5c9d7e1f30/export";
    assert_snapshot!(ann.get(missing).await.head(), @"404");
    assert_snapshot!(ann.post(&import, &typed).await.head(), @"403");
}

/// Returns content type and body of the form with a file.
fn upload(csrf: &str, file: &str) -> (&'static str, String) {
    let part = |name: &str, value: &str| {
        format!("--edge\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let parts = [part("csrf", csrf), part("numbers", ""), part("file", file)].concat();
    ("multipart/form-data; boundary=edge", format!("{parts}--edge--\r\n"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_created_and_deleted() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get("/optouts").await;
    let unnamed = ann.send(&page, "/optouts", &[("name", " ")]).await;
    assert_snapshot!(unnamed.part("action=\"/optouts\""), @"
    422
    Name [ ]
    ✗ The name must not be empty.
    (Create list)
    ");
    let created = ann.send(&page, "/optouts", &[("name", "Newsletter")]).await;
    let again = ann.send(&page, "/optouts", &[("name", "Newsletter")]).await;
    assert_eq!(created.header("location"), again.header("location"));
    let list = ann.follow(&created).await;
    assert_snapshot!(list.notice(), @"200 List created.");
    assert_snapshot!(list.section("list"), @"
    200
    Newsletter Test
    Other lists
    default
    Newsletter
    Create list
    Create another list
    ()
    Name []
    A message or campaign can use this list instead of the default.
    (Create list)
    Delete list
    Delete list?
    This deletes the list and all its numbers.
    ()
    (Delete list)
    Search by number
    []
    (Search)
    No opt-outs yet
    Replies of STOP are added automatically. You can also add or import existing opt-outs.
    ");
    let deleted = ann.send(&list, &list.action("/delete"), &[]).await;
    assert_snapshot!(deleted.head(), @"303 /optouts?done=deleted");
    assert_snapshot!(
        ann.follow(&deleted).await.notice(),
        @"200 List deleted, with all its numbers."
    );
    let default = page.action("/add").replace("/add", "/delete");
    assert_snapshot!(ann.submit(&default, &[]).await.main(), @"
    409
    Request failed
    The default list can't be removed: an account always has one.
    ");
    assert_snapshot!(ann.submit("/optouts", &[("name", "News")]).await.head(), @"400");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_sees_opt_outs_but_cannot_change_them() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    ann.opt_out("+447700900123").await;
    let add = ann.get("/optouts").await.action("/add");
    let vic = site.member(&ann, "vic@example.com", Role::Viewer).await;
    assert_snapshot!(vic.get("/optouts").await.section("list"), @"
    200
    default Default Test
    Search by number
    []
    (Search)
    Number | Source | Opted out | Remove
    +447700900123 | Added by ann@example.com | DATE
    ");
    let key = "0190b0a0-6f2e-7c3d-8a41-2b5c9d7e1f30";
    let typed = [("number", "447700900123"), ("numbers", "447700900123")];
    for action in ["/add", "/remove", "/import", "/delete"] {
        let refused = vic.submit(&add.replace("/add", action), &typed).await;
        assert_eq!(refused.status, 403, "{action}");
    }
    let create = [("name", "Mine"), ("idempotency_key", key)];
    assert_eq!(vic.submit("/optouts", &create).await.status, 403);
}
