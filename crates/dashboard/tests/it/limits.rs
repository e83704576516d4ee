//! The limits of an account: the page, the form of the operator, and the limits of pages themselves.

use crate::support::site::Site;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use heliograph_domain::account_limit::AccountLimit;
use heliograph_service::identity::account_limits;
use heliograph_service::kernel::audit::Actor;
use insta::assert_snapshot;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_shows_use_against_limit() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let (hooks, url) = ("/settings/webhooks", [("url", "https://example.com/hook")]);
    assert_eq!(ann.fill(hooks, hooks, &url).await.status, StatusCode::SEE_OTHER);
    assert_snapshot!(ann.get("/settings/limits").await.main(), @"
    200
    Limits
    What ann@example.com may use, and what it uses. Days begin at midnight UTC. Ask the operator of this service for a higher limit.
    Limit | Used | Maximum
    API requests per second of each key | – | No limit
    Open dashboard pages with live updates | 0 | 100
    Webhook endpoints in each mode | 1 | 10
    Test messages per day | 0 | No limit
    Invitations per day | 0 | 50
    Emails per day | – | 200
    Stored test messages and opt-outs | 0 | No limit
    ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operator_changes_limits_of_an_account() {
    let site = Site::new().await;
    let olga = site.operator("olga@example.com").await;
    let page = olga.get("/operator/accounts").await;
    let path = "/operator/accounts/1/limits";
    let wrong = olga.send(&page, path, &[("webhook_endpoints", "many")]).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(wrong.body.contains("Enter a whole number"), "{}", wrong.body);
    let saved = olga.send(&page, path, &[("webhook_endpoints", "3"), ("event_streams", "0")]).await;
    assert_snapshot!(saved.head(), @"303 /operator/accounts?done=limited");
    let account = olga.user().await.details.session.account;
    let max = |limit| site.cx().limits.max(account, limit);
    assert_eq!(max(AccountLimit::WebhookEndpoints), Some(3));
    assert_eq!(max(AccountLimit::EventStreams), None);
    let page = olga.get("/operator/accounts").await;
    olga.send(&page, path, &[("webhook_endpoints", ""), ("event_streams", "")]).await;
    assert_eq!(max(AccountLimit::WebhookEndpoints), Some(10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn event_streams_are_limited() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let account = ann.user().await.details.session.account;
    let changes = [(AccountLimit::EventStreams, Some(2))];
    account_limits::change(site.cx(), &Actor::operator(account), &changes).await.unwrap();
    let open = async || ann.respond(Request::get("/live").body(Body::empty()).unwrap()).await;
    let (first, second) = (open().await, open().await);
    assert_eq!((first.status(), second.status()), (StatusCode::OK, StatusCode::OK));
    assert_eq!(open().await.status(), StatusCode::TOO_MANY_REQUESTS);
    drop(first);
    assert_eq!(open().await.status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_one_address_are_limited() {
    let site = Site::new().await;
    let client = site.client();
    let mut refused = None;
    // The burst, and more than what is allowed meanwhile.
    for _ in 0..10_000 {
        let page = client.get("/sign-in").await;
        if page.status == StatusCode::TOO_MANY_REQUESTS {
            refused = Some(page);
            break;
        }
    }
    let refused = refused.unwrap();
    assert!(refused.body.contains("Too many attempts"), "{}", refused.body);
    assert_eq!(refused.header("retry-after"), "1");
}
