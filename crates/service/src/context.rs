//! What every rule may use: the database, the clock, ids, and the operator's settings.

use crate::bells::Bells;
use crate::error::{Error, Result};
use heliograph_domain::carrier::Routes;
use heliograph_domain::id::{CarrierId, Ids, NodeId};
use heliograph_domain::rate::Rates;
use heliograph_domain::secret::{Random, Token};
use heliograph_domain::target::{Reach, Resolver};
use heliograph_domain::time::{Clock, Timestamp};
use heliograph_store::Db;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use uuid::Uuid;

/// What the rules need from outside; cheap to clone.
#[derive(Clone)]
pub struct Context {
    /// The database.
    pub db: Db,
    /// This node's clock.
    pub clock: Arc<dyn Clock>,
    /// Makes ids.
    pub ids: Arc<dyn Ids>,
    /// Makes what nobody can guess.
    pub random: Arc<dyn Random>,
    /// Wakes the pages of those who look at an account.
    pub bells: Bells,
    /// Finds the addresses of webhook endpoints.
    pub resolver: Arc<dyn Resolver>,
    /// This node's number, with which it signs leases.
    pub node: NodeId,
    /// The operator's settings as they are now.
    pub settings: watch::Receiver<Arc<Settings>>,
}

/// What the operator can change while the service runs: replaced as a whole.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Over whom live messages go.
    pub routes: Routes,
    /// What they cost.
    pub rates: Rates,
    /// Over whom test messages go.
    pub simulated: CarrierId,
    /// What people get for their one word.
    pub replies: Replies,
    /// How people come in.
    pub entrance: Entrance,
    /// Where webhooks may go.
    pub reach: Reach,
    /// How long an endpoint may take to answer.
    pub webhook_timeout: Duration,
    /// How long events are kept.
    pub webhook_retention: Duration,
}

/// How people come in.
#[derive(Clone, Debug)]
pub struct Entrance {
    /// Whether anybody may open an account.
    pub open: bool,
    /// The currency of new accounts, ISO 4217.
    pub currency: String,
    /// The address of the dashboard, without a slash at its end: what links in mails begin with.
    pub base_url: String,
    /// The operator named that address; otherwise it is a guess, and a page's own address is better.
    pub named: bool,
    /// Whether mail can be sent.
    pub mail: bool,
}

/// The answers to STOP, START and HELP; what is left out is not answered.
#[derive(Clone, Default, Debug)]
pub struct Replies {
    /// To who wants nothing more.
    pub stop: Option<String>,
    /// To who wants something again.
    pub start: Option<String>,
    /// To who wants to know.
    pub help: Option<String>,
}

impl Context {
    /// A fresh id and the instant that it carries.
    pub fn next_id(&self) -> (Uuid, Timestamp) {
        let now = self.db.now();
        (self.ids.next(now), now)
    }

    /// Bytes that nobody can guess.
    ///
    /// # Errors
    /// [`Error::Internal`] when the operating system has none.
    pub fn random<const N: usize>(&self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        match self.random.fill(&mut bytes) {
            true => Ok(bytes),
            false => Err(Error::Internal("the operating system gives no randomness".to_owned())),
        }
    }

    /// A fresh token.
    ///
    /// # Errors
    /// As [`Self::random`].
    pub fn token(&self) -> Result<Token> {
        Ok(Token::from_random(&self.random()?))
    }

    /// The settings as they are now.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.borrow().clone()
    }
}
