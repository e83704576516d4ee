//! Price: what a message costs, before anything is stored.

use crate::context::Settings;
use crate::error::{Error, Result};
use heliograph_domain::account::Mode;
use heliograph_domain::id::CarrierId;
use heliograph_domain::money::Amount;
use heliograph_domain::phone::Recipient;
use heliograph_domain::text::{self, Encoding};

/// How a text would be sent, over whom, and for how much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quote {
    /// How it is encoded.
    pub encoding: Encoding,
    /// Of how many parts it is.
    pub parts: u16,
    /// What one of them costs; nothing in test mode.
    pub part_price: Amount,
    /// Over whom it goes.
    pub carrier: CarrierId,
}

/// Measures and prices a text.
///
/// # Errors
/// [`Error::TooManyParts`], [`Error::DestinationNotAllowed`].
pub fn quote(
    settings: &Settings,
    mode: Mode,
    recipient: Recipient,
    text: &str,
    max_parts: Option<u16>,
) -> Result<Quote> {
    let size = text::measure(text);
    let allowed = max_parts.map_or(text::MAX_PARTS, |m| m.min(text::MAX_PARTS));
    if size.parts > allowed {
        return Err(Error::TooManyParts { parts: size.parts, allowed });
    }
    let (carrier, part_price) = match mode {
        Mode::Test => (settings.simulated, Amount::ZERO),
        Mode::Live => {
            let carriers = settings.routes.find(recipient).ok_or(Error::DestinationNotAllowed)?;
            let carrier = carriers.first().ok_or(Error::DestinationNotAllowed)?;
            (*carrier, settings.rates.part_price(recipient))
        }
    };
    Ok(Quote { encoding: size.encoding, parts: size.parts, part_price, carrier })
}
