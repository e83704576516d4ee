//! The context of the business rules: database, clock, ids and the operator's settings.

use crate::kernel::account_limits::LimitTable;
use crate::kernel::error::{Error, Result};
use crate::kernel::name_resolution::NameResolution;
use crate::kernel::notifier::ChangeNotifier;
use heliograph_domain::carrier::RoutingTable;
use heliograph_domain::egress_policy::EgressPolicy;
use heliograph_domain::fields::MessageText;
use heliograph_domain::id::{AccountId, CarrierId, Ids, NodeId};
use heliograph_domain::originator::{BadOriginator, Originator};
use heliograph_domain::rate::Rates;
use heliograph_domain::secret::{Random, Token};
use heliograph_domain::time::{Clock, Timestamp};
use heliograph_store::Db;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use uuid::Uuid;

/// The dependencies of the business rules; cheap to clone.
#[derive(Clone)]
pub struct Context {
    /// The database.
    pub db: Db,
    /// The clock of this node.
    pub clock: Arc<dyn Clock>,
    /// The id generator.
    pub ids: Arc<dyn Ids>,
    /// The source of secure random bytes.
    pub random: Arc<dyn Random>,
    /// Notifies open dashboard pages when something of their account changed.
    pub notifier: ChangeNotifier,
    /// Resolves the hosts of webhook endpoints.
    pub names: NameResolution,
    /// The number of this node, which owns its leases.
    pub node: NodeId,
    /// The limits of all accounts.
    pub limits: LimitTable,
    /// The operator's current settings.
    pub settings: watch::Receiver<Arc<Settings>>,
}

/// The settings that the operator can change while the service runs; always replaced as a whole.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The routes of live messages.
    pub routes: RoutingTable,
    /// The prices of live messages.
    pub rates: Rates,
    /// The simulated carrier, which handles all test messages.
    pub simulated: CarrierId,
    /// The accounts of the assigned numbers.
    pub number_owners: NumberOwners,
    /// The automatic replies to STOP, START and HELP.
    pub keyword_replies: KeywordReplies,
    /// The settings of signing up and of links in mails.
    pub sign_up: SignUpSettings,
    /// True if a carrier is configured that reaches real phones.
    pub live_carriers: bool,
    /// True if operators need two-factor authentication.
    pub operator_two_factor: bool,
    /// The egress policy: addresses that webhook requests may reach (SSRF protection).
    pub egress_policy: EgressPolicy,
    /// The time limit of one webhook request.
    pub webhook_timeout: Duration,
    /// The time for which events are kept.
    pub webhook_retention: Duration,
    /// The time for which test messages are kept; `None` keeps them.
    pub test_message_retention: Option<Duration>,
    /// The time for which live messages are kept; `None` keeps them.
    pub live_message_retention: Option<Duration>,
}

/// The accounts of the assigned numbers. A node reads them at its start and every ten seconds.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct NumberOwners(pub HashMap<String, AccountId>);

impl NumberOwners {
    /// Returns whether an account may send messages from this originator: not from a number of
    /// another account, which would receive the replies.
    pub fn allow(&self, account: AccountId, originator: &Originator) -> bool {
        self.0.get(originator.as_str()).is_none_or(|owner| *owner == account)
    }

    /// Parses the originator of a reply. An assigned number of the account is used as it is, also if
    /// it is neither a usual short code nor an international number.
    pub fn originator(
        &self,
        account: AccountId,
        text: &str,
    ) -> std::result::Result<Originator, BadOriginator> {
        match self.0.get(text) {
            Some(owner) if *owner == account => Ok(Originator::from_stored(text.to_owned())),
            _ => text.parse(),
        }
    }
}

/// Settings of signing up and of links in mails.
#[derive(Clone, Debug)]
pub struct SignUpSettings {
    /// True if anyone may create an account.
    pub enabled: bool,
    /// The currency of new accounts, ISO 4217.
    pub currency: String,
    /// The base URL of the dashboard without a trailing slash; links in mails begin with it.
    pub base_url: String,
    /// True if the operator configured `base_url`. Otherwise it is a guess, and pages use the
    /// address of the request instead.
    pub base_url_configured: bool,
    /// True if mail can be sent.
    pub mail_enabled: bool,
}

/// The automatic replies to keywords; `None` sends no reply.
#[derive(Clone, Default, Debug)]
pub struct KeywordReplies {
    /// The reply to STOP.
    pub stop: Option<MessageText>,
    /// The reply to START.
    pub start: Option<MessageText>,
    /// The reply to HELP.
    pub help: Option<MessageText>,
}

impl Context {
    /// Returns a fresh id and the instant that it encodes.
    pub fn next_id(&self) -> (Uuid, Timestamp) {
        let now = self.db.now();
        (self.ids.next(now), now)
    }

    /// Returns secure random bytes.
    ///
    /// # Errors
    /// [`Error::Internal`] when the operating system provides none.
    pub fn random<const N: usize>(&self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        if self.random.fill(&mut bytes) {
            Ok(bytes)
        } else {
            Err(Error::Internal("the operating system provides no random bytes".to_owned()))
        }
    }

    /// Returns a fresh token.
    pub fn token(&self) -> Result<Token> {
        Ok(Token::from_random(&self.random()?))
    }

    /// Returns the current settings.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.borrow().clone()
    }
}
