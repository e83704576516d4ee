//! Members: invitations, roles and removal.

use crate::support::site::{PASSWORD, Site};
use heliograph_domain::account::Role;
use insta::assert_snapshot;
use std::time::Duration;

const MEMBERS: &str = "/settings/members";
const REVOKE: &str = "/settings/members/revoke";
const REMOVE: &str = "/settings/members/remove";
const ROLE: &str = "/settings/members/role";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_invited_and_the_invitation_revoked() {
    let site = Site::with(|settings| settings.sign_up.mail_enabled = false).await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get(MEMBERS).await;
    assert_snapshot!(page.main(), @"
    200
    Members
    People with access to ann@example.com (account ID 1), and their roles.
    Invite member
    Invite a member
    ()
    Email []
    Role
    [ ] Owner / Full access, including owners
    [ ] Admin / Manages API keys, webhooks and members
    [x] Member / Sends messages and edits opt-out lists
    [ ] Viewer / Read only
    (Create invitation link)
    This server cannot send email. You will get a link to share.
    Members
    1
    ann@example.com You
    Role of ann@example.com [Owner]
    (Save role of ann@example.com)
    Leave account
    Leave account?
    You will lose access to this account.
    ()
    (Leave)
    Two-factor authentication
    Members may sign in with a password only. Without two-factor authentication, they can open nothing but their security settings once you require it.
    (Require it from all members)
    ");
    let invited = ann.send(&page, MEMBERS, &[("email", "bob@example.com")]).await;
    assert_snapshot!(invited.section("invited"), @"
    200
    Invitation link for bob@example.com
    ()
    http://localhost/join/…
    Copy this link now: it is shown only once. It works once and expires in seven days.
    ");
    assert_snapshot!(invited.section("members"), @"
    200
    Members
    1
    ann@example.com You
    Role of ann@example.com [Owner]
    (Save role of ann@example.com)
    Leave account
    Leave account?
    You will lose access to this account.
    ()
    (Leave)
    bob@example.com
    Invited as member. Expires DATE
    Revoke bob@example.com
    Revoke bob@example.com?
    The invitation link will stop working.
    ()
    (Revoke)
    ");
    let again = ann.send(&page, MEMBERS, &[("email", "bob@example.com")]).await;
    assert_eq!(invited.content("invitation"), again.content("invitation"));
    let revoked = ann.send(&invited, REVOKE, &[]).await;
    assert_snapshot!(
        ann.follow(&revoked).await.notice(),
        @"200 Invitation revoked. The link no longer works."
    );
    assert_snapshot!(ann.send(&invited, REVOKE, &[]).await.head(), @"404");
    assert_snapshot!(ann.send(&invited, REVOKE, &[("id", "x")]).await.head(), @"400");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_an_invitation_are_at_their_fields() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get(MEMBERS).await;
    let typed = [("email", "bob"), ("role", "king")];
    assert_snapshot!(ann.send(&page, MEMBERS, &typed).await.part("action=\"/settings/members\""), @"
    422
    Email [bob]
    ✗ Enter a valid email address, such as ann@example.com.
    Role
    [ ] Owner / Full access, including owners
    [ ] Admin / Manages API keys, webhooks and members
    [ ] Member / Sends messages and edits opt-out lists
    [ ] Viewer / Read only
    ✗ Select a role.
    (Send invitation)
    ");
    let typed = [("email", "ann@example.com"), ("role", "admin")];
    assert_snapshot!(ann.send(&page, MEMBERS, &typed).await.part("action=\"/settings/members\""), @"
    422
    Email [ann@example.com]
    ✗ This person is already a member of the account.
    Role
    [ ] Owner / Full access, including owners
    [x] Admin / Manages API keys, webhooks and members
    [ ] Member / Sends messages and edits opt-out lists
    [ ] Viewer / Read only
    (Send invitation)
    ");
    assert_snapshot!(ann.post(MEMBERS, &typed).await.head(), @"403");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_are_changed_and_members_removed() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get(MEMBERS).await;
    let alone = ann.send(&page, ROLE, &[("role", "viewer")]).await;
    assert_snapshot!(
        alone.notice(),
        @"409 ✗ An account needs an owner. Make another member an owner first."
    );
    let alone = ann.send(&page, REMOVE, &[]).await;
    assert_snapshot!(
        alone.notice(),
        @"409 ✗ An account needs an owner. Make another member an owner first."
    );
    let bob = site.member(&ann, "bob@example.com", Role::Member).await;
    let id = bob.user().await.details.session.user.to_string();
    let admin = ann.send(&page, ROLE, &[("id", &id), ("role", "admin")]).await;
    assert_snapshot!(ann.follow(&admin).await.notice(), @"200 Role changed.");
    assert_snapshot!(bob.get(MEMBERS).await.section("members"), @"
    200
    Members
    2
    ann@example.com
    Owner
    bob@example.com You
    Role of bob@example.com [Admin]
    (Save role of bob@example.com)
    Leave account
    Leave account?
    You will lose access to this account.
    ()
    (Leave)
    ");
    let king = ann.send(&page, ROLE, &[("id", &id), ("role", "king")]).await;
    assert_snapshot!(king.head(), @"400");
    let removed = ann.send(&page, REMOVE, &[("id", &id)]).await;
    assert_snapshot!(ann.follow(&removed).await.notice(), @"200 Member removed.");
    assert_snapshot!(ann.send(&page, REMOVE, &[("id", &id)]).await.head(), @"404");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_can_only_leave() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let id = ann.user().await.details.session.user.to_string();
    let vic = site.member(&ann, "vic@example.com", Role::Viewer).await;
    let page = vic.get(MEMBERS).await;
    assert_snapshot!(page.section("members"), @"
    200
    Members
    2
    ann@example.com
    Owner
    vic@example.com You
    Viewer
    Leave account
    Leave account?
    You will lose access to this account.
    ()
    (Leave)
    ");
    assert!(!page.has("aria-labelledby=\"invite\""));
    let invite = [("email", "eve@example.com"), ("role", "owner")];
    assert_eq!(vic.submit(MEMBERS, &invite).await.status, 403);
    assert_eq!(vic.submit(ROLE, &[("id", &id), ("role", "viewer")]).await.status, 403);
    assert_eq!(vic.submit(REMOVE, &[("id", &id)]).await.status, 403);
    assert_eq!(vic.submit(REVOKE, &[("id", &id)]).await.status, 403);
    let left = vic.send(&page, REMOVE, &[]).await;
    assert_snapshot!(left.head(), @"303 /settings/members?done=left");
    let left = vic.follow(&left).await;
    assert_snapshot!(
        left.notice(),
        @"200 You left the account. This is another one of your accounts."
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_mail_only_the_mailbox_gets_the_link() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get(MEMBERS).await;
    let bob = [("email", "bob@example.com")];
    // A form that is sent twice makes one invitation and one mail.
    for _ in 0..2 {
        let invited = ann.send(&page, MEMBERS, &bob).await;
        assert_eq!(invited.head(), "303 /settings/members?done=invited");
    }
    assert_eq!(site.db.query_raw("SELECT CAST(count(*) AS text) FROM mails").await, [["1"]]);
    let (mail, path) = site.mail("bob@example.com").await;
    assert!(!mail.contains("ann@example.com"), "{mail}");
    let browser = site.client();
    let action = format!("{path}/sign-up");
    let joined = browser.fill(&path, &action, &[("password", PASSWORD)]).await;
    assert_snapshot!(joined.head(), @"303 / sets heliograph sets heliograph-device");
    assert!(!browser.get("/overview").await.has("aria-label=\"Email address\""), "not confirmed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn withdrawing_and_repeating_invitations_is_limited() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let bob = [("email", "bob@example.com")];
    for _ in 0..3 {
        let invited = ann.fill(MEMBERS, MEMBERS, &bob).await;
        let page = ann.follow(&invited).await;
        assert_eq!(ann.send(&page, REVOKE, &[]).await.status, 303);
    }
    assert_snapshot!(
        ann.fill(MEMBERS, MEMBERS, &bob).await.error("email"),
        @"422 ✗ This person was invited too many times today. Try again tomorrow."
    );
    site.db.clock.advance(Duration::from_secs(86_400));
    assert_eq!(ann.fill(MEMBERS, MEMBERS, &bob).await.status, 303);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_requires_two_factor_authentication() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let bob = site.member(&ann, "bob@example.com", Role::Admin).await;
    let require = "/settings/members/two-factor";
    let first =
        ann.press(&ann.get(MEMBERS).await, (require, require), &[("required", "yes")]).await;
    assert_snapshot!(
        first.notice(),
        @"409 ✗ Enable two-factor authentication for yourself first, under Security."
    );
    ann.set_up_two_factor().await;
    let done = ann.press(&ann.get(MEMBERS).await, (require, require), &[("required", "yes")]).await;
    assert_snapshot!(
        ann.follow(&done).await.notice(),
        @"200 Members now need two-factor authentication."
    );
    assert_snapshot!(bob.get("/overview").await.head(), @"303 /settings/security");
    assert_snapshot!(
        bob.get("/settings/security").await.notice(),
        @"200 ✗ You need two-factor authentication here. Enable it to continue."
    );
    assert_eq!(bob.submit(require, &[("required", "no")]).await.head(), "303 /settings/security");
    bob.set_up_two_factor().await;
    assert_eq!(bob.get("/overview").await.status, 200);
    assert_eq!(bob.submit(require, &[("required", "no")]).await.status, 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invitations_end_with_the_membership_of_the_inviter() {
    let site = Site::with(|settings| settings.sign_up.mail_enabled = false).await;
    let ann = site.owner("ann@example.com").await;
    let bob = site.member(&ann, "bob@example.com", Role::Admin).await;
    let invited = bob.fill(MEMBERS, MEMBERS, &[("email", "eve@example.com")]).await;
    let link = invited.content("invitation");
    let path = link.split_once("/join").map(|(_, rest)| format!("/join{rest}")).unwrap();
    let stranger = site.client();
    assert_eq!(stranger.get(&path).await.status, 200);
    let id = bob.user().await.details.session.user.to_string();
    let page = ann.get(MEMBERS).await;
    ann.send(&page, REMOVE, &[("id", &id)]).await;
    assert_eq!(stranger.get(&path).await.status, 404);
    assert!(!ann.get(MEMBERS).await.main().contains("eve@example.com"));
    assert!(
        ann.get("/settings/audit-log")
            .await
            .main()
            .contains("Invitation revoked / eve@example.com")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invitations_end_when_the_inviter_may_not_invite_any_more() {
    let site = Site::with(|settings| settings.sign_up.mail_enabled = false).await;
    let ann = site.owner("ann@example.com").await;
    let bob = site.member(&ann, "bob@example.com", Role::Admin).await;
    let invited = bob.fill(MEMBERS, MEMBERS, &[("email", "eve@example.com")]).await;
    let link = invited.content("invitation");
    let path = link.split_once("/join").map(|(_, rest)| format!("/join{rest}")).unwrap();
    // At the same time as the removal, another node stored the invitation.
    site.db.execute_raw("UPDATE memberships SET role = 2 WHERE role = 1").await;
    assert_eq!(site.client().get(&path).await.status, 404);
}
