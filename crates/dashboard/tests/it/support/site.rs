//! The dashboard over a database of its own, and its users.

use crate::support::client::{ADDRESS, Client};
use axum::Router;
use heliograph_dashboard::{DashboardState, LiveUpdates, PageRate, SignInThrottle};
use heliograph_domain::account::{Mode, Role};
use heliograph_http::DrainController;
use heliograph_service::identity::magic_links::{self, MagicLinkKind};
use heliograph_service::identity::members::{self, Invitee};
use heliograph_service::identity::sessions::{self, SessionOrigin};
use heliograph_service::identity::{accounts, passwords};
use heliograph_service::kernel::context::{Context, Settings};
use heliograph_testing::{TestDb, TestWriter, context, writer};
use std::cell::RefCell;
use std::sync::Arc;
use tokio::sync::watch;

/// A password that is strong enough.
pub(crate) const PASSWORD: &str = "otter velvet tram";

/// The dashboard. The database is last, so that it is removed last.
pub(crate) struct Site {
    pub(crate) app: Arc<DashboardState>,
    pub(crate) router: Router,
    _drain: DrainController,
    writer: RefCell<Option<TestWriter>>,
    pub(crate) db: TestDb,
}

impl Site {
    /// Starts with open sign-up, mail, and one carrier.
    pub(crate) async fn new() -> Self {
        Self::with(|_| ()).await
    }

    /// Starts with changed settings.
    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let db = TestDb::new().await;
        let mut context = context(&db).await;
        let mut settings = (*context.settings()).clone();
        change(&mut settings);
        context.settings = watch::channel(Arc::new(settings)).1;
        let (running, drain) = (writer(&context), DrainController::new(100));
        let (hashing, work) = passwords::channel();
        std::thread::spawn(move || work.run());
        let app = Arc::new(DashboardState {
            context,
            writer: running.writer.clone(),
            sign_in_throttle: SignInThrottle::new(hashing),
            page_rate: PageRate::default(),
            live_updates: LiveUpdates::default(),
            gate: drain.gate(),
        });
        let router = heliograph_dashboard::router(app.clone());
        let writer = RefCell::new(Some(running));
        Self { app, router, _drain: drain, writer, db }
    }

    /// Stops the writer, as a node does that shuts down.
    pub(crate) fn stop_writer(&self) {
        self.writer.borrow_mut().take();
    }

    pub(crate) fn cx(&self) -> &Context {
        &self.app.context
    }

    /// Returns a client without cookies.
    pub(crate) fn client(&self) -> Client<'_> {
        Client::new(self)
    }

    /// Creates an account and signs in its owner, in test mode.
    pub(crate) async fn owner(&self, email: &str) -> Client<'_> {
        accounts::create(self.cx(), email, "EUR", false).await.unwrap().unwrap();
        self.sign_in(email).await
    }

    /// Creates an account and signs in its owner, who operates the installation.
    pub(crate) async fn operator(&self, email: &str) -> Client<'_> {
        accounts::create(self.cx(), email, "EUR", true).await.unwrap().unwrap();
        self.sign_in(email).await
    }

    /// Adds a user to the account of `owner`, and signs in the user there, in test mode.
    pub(crate) async fn member(&self, owner: &Client<'_>, email: &str, role: Role) -> Client<'_> {
        let (cx, by, address) = (self.cx(), owner.user().await, origin().address);
        let (token, invitee) = (cx.token().unwrap(), Invitee { email, role });
        members::invite(cx, &by, &by.actor(&address), invitee, token.clone()).await.unwrap();
        let client = self.owner(email).await;
        let user = client.user().await;
        let account = members::accept_invitation(cx, &user, &address, &token).await.unwrap();
        sessions::switch_to(cx, &user, account, Mode::Test).await.unwrap();
        client
    }

    /// Signs in a user by a link, which takes no time for a password.
    pub(crate) async fn sign_in(&self, email: &str) -> Client<'_> {
        let link = magic_links::create(self.cx(), email, MagicLinkKind::SignIn).await.unwrap();
        let session = magic_links::sign_in(self.cx(), &link, &origin()).await.unwrap();
        self.client().with_session(&session)
    }
}

fn origin() -> SessionOrigin {
    let address = std::net::IpAddr::from(ADDRESS).to_string();
    SessionOrigin { address, agent: "curl/8.5.0".to_owned() }
}
