//! The state that every page can use.

use crate::live_updates::LiveUpdates;
use crate::page_rate::PageRate;
use crate::sign_in_throttle::SignInThrottle;
use heliograph_http::RequestGate;
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::writer::Writer;

/// The state of the dashboard.
pub struct DashboardState {
    /// The context of the business rules.
    pub context: Context,
    /// The handle of the database writer.
    pub writer: Writer,
    /// Limits attempts to sign in.
    pub sign_in_throttle: SignInThrottle,
    /// Limits the pages of a client.
    pub page_rate: PageRate,
    /// Watches the accounts with open pages.
    pub live_updates: LiveUpdates,
    /// Ends event streams when the node drains.
    pub gate: RequestGate,
}
