//! Style sheet, scripts and live updates of the pages.

use crate::support::site::Site;
use axum::body::Body;
use axum::extract::Request;
use http_body_util::BodyExt;
use insta::assert_snapshot;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_refers_to_assets_that_never_change() {
    let site = Site::new().await;
    let browser = site.client();
    let page = browser.get("/sign-in").await;
    let assets: Vec<_> = page.body.split('"').filter(|s| s.starts_with("/assets/")).collect();
    assert!(assets.len() > 2, "{assets:?}");
    for path in &assets {
        let asset = browser.get(path).await;
        assert_eq!(asset.status, 200, "{path}");
        assert_eq!(asset.header("cache-control"), "public, max-age=31536000, immutable");
        let request = Request::get(*path).header("if-none-match", asset.header("etag"));
        let known = browser.request(request.body(Body::empty()).unwrap()).await;
        assert_eq!((known.status.as_u16(), known.body.as_str()), (304, ""), "{path}");
    }
    assert_eq!(browser.get("/assets/1/none.css").await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_page_is_told_of_changes() {
    let site = Site::new().await;
    assert_snapshot!(site.client().get("/live").await.head(), @"303 /sign-in?next=%2Flive");
    let ann = site.owner("ann@example.com").await;
    let request = Request::get("/live").body(Body::empty()).unwrap();
    let mut stream = ann.respond(request).await.into_body();
    let first = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_snapshot!(String::from_utf8_lossy(&first), @"
    retry: 1000
    event: changed
    data:
    ");
    ann.send_text("+447700900123", "Hello").await;
    let next = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_snapshot!(String::from_utf8_lossy(&next), @"
    event: changed
    data:
    ");
}
