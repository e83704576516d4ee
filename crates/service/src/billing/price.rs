//! Routing and pricing a message before it is stored.

use crate::kernel::context::Settings;
use crate::kernel::error::{DestinationReason, Error, Result};
use heliograph_domain::account::Mode;
use heliograph_domain::fields::MaxParts;
use heliograph_domain::id::CarrierId;
use heliograph_domain::money::Amount;
use heliograph_domain::phone::Recipient;
use heliograph_domain::text::{self, Encoding};

/// The encoding, route and price of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quote {
    /// The encoding.
    pub encoding: Encoding,
    /// The number of message parts.
    pub parts: u16,
    /// The price of one part; zero in test mode.
    pub part_price: Amount,
    /// The carrier of the route.
    pub carrier: CarrierId,
}

/// Returns the quote of a text.
///
/// # Errors
/// [`Error::TooManyParts`], [`Error::DestinationNotAllowed`].
pub fn quote(
    settings: &Settings,
    mode: Mode,
    recipient: Recipient,
    text: &str,
    max_parts: Option<MaxParts>,
) -> Result<Quote> {
    let size = text::measure(text);
    let allowed = max_parts.map_or(text::MAX_PARTS, |max| max.get().min(text::MAX_PARTS));
    if size.parts > allowed {
        return Err(Error::TooManyParts { parts: size.parts, allowed });
    }
    let (carrier, part_price) = match mode {
        Mode::Test => (settings.simulated, Amount::ZERO),
        Mode::Live => {
            let refused = Error::DestinationNotAllowed;
            let carriers = settings.routes.find(recipient);
            let carrier = carriers.and_then(|carriers| carriers.first());
            let carrier = carrier.ok_or(refused(DestinationReason::NoRoute))?;
            let price = settings.rates.part_price(recipient);
            (*carrier, price.ok_or(refused(DestinationReason::NoPrice))?)
        }
    };
    Ok(Quote { encoding: size.encoding, parts: size.parts, part_price, carrier })
}
