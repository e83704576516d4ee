//! Members: invitations, roles and removal.

use crate::support::site::Site;
use heliograph_domain::account::Role;
use insta::assert_snapshot;

const MEMBERS: &str = "/settings/members";
const REVOKE: &str = "/settings/members/revoke";
const REMOVE: &str = "/settings/members/remove";
const ROLE: &str = "/settings/members/role";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_invited_and_the_invitation_revoked() {
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let page = ann.get(MEMBERS).await;
    assert_snapshot!(page.main(), @"
    200
    Members
    People with access to ann@example.com (account ID 1), and their roles.
    Members
    1
    ann@example.com You
    Role of ann@example.com [Owner]
    (Save role of ann@example.com)
    Leave account
    You will lose access to this account.
    (Leave)
    ()
    Invite a member
    Email []
    Role
    [ ] Owner / Full access, including owners
    [ ] Admin / Manages API keys, webhooks and members
    [x] Member / Sends messages and edits opt-out lists
    [ ] Viewer / Read only
    (Send invitation)
    ");
    let invited = ann.send(&page, MEMBERS, &[("email", "bob@example.com")]).await;
    assert_snapshot!(invited.section("invited"), @"
    200
    Invitation link for bob@example.com
    ()
    http://localhost/join/…
    We also sent it by email. Copy this link now: it is shown only once. It works once and expires in seven days.
    ");
    assert_snapshot!(invited.section("members"), @"
    200
    Members
    1
    ann@example.com You
    Role of ann@example.com [Owner]
    (Save role of ann@example.com)
    Leave account
    You will lose access to this account.
    (Leave)
    ()
    bob@example.com
    Invited as member. Expires DATE
    Revoke bob@example.com
    The invitation link will stop working.
    (Revoke)
    ()
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
    assert_snapshot!(ann.send(&page, MEMBERS, &typed).await.section("invite"), @"
    422
    Invite a member
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
    assert_snapshot!(ann.send(&page, MEMBERS, &typed).await.section("invite"), @"
    422
    Invite a member
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
    You will lose access to this account.
    (Leave)
    ()
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
    You will lose access to this account.
    (Leave)
    ()
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
async fn invitations_end_with_the_membership_of_the_inviter() {
    let site = Site::new().await;
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
    let site = Site::new().await;
    let ann = site.owner("ann@example.com").await;
    let bob = site.member(&ann, "bob@example.com", Role::Admin).await;
    let invited = bob.fill(MEMBERS, MEMBERS, &[("email", "eve@example.com")]).await;
    let link = invited.content("invitation");
    let path = link.split_once("/join").map(|(_, rest)| format!("/join{rest}")).unwrap();
    // At the same time as the removal, another node stored the invitation.
    site.db.execute_raw("UPDATE memberships SET role = 2 WHERE role = 1").await;
    assert_eq!(site.client().get(&path).await.status, 404);
}
