//! Size and price of a text: characters, segments, encoding, and the characters that force UCS-2.

use crate::error_page::PageError;
use crate::form::Form;
use crate::format;
use crate::session::SessionRequest;
use crate::state::DashboardState;
use heliograph_domain::account::Mode;
use heliograph_domain::money::Amount;
use heliograph_domain::phone::Recipient;
use heliograph_domain::text::non_gsm::{self, Span};
use heliograph_domain::text::{self, Encoding, TextSize};
use heliograph_domain::wording::sentence;
use heliograph_service::billing::price;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::messaging::conversations;

/// The largest number of characters listed; a text in another alphabet has many.
const MAX_LISTED: usize = 6;
const OPTED_OUT: &str = "This recipient has opted out (STOP). The message will be rejected \
                         unless you override this under “More options”.";
const NO_BALANCE: &str = "Insufficient balance. Ask the operator of this service to add credit.";

pub(crate) struct MessageSize {
    pub(crate) characters: usize,
    pub(crate) segments: u16,
    pub(crate) encoding: &'static str,
    pub(crate) price: String,
    /// The number of characters that still fit in the last segment.
    pub(crate) remaining: String,
    /// The reason why the message would be rejected.
    pub(crate) error: String,
    /// Whether the encoding is UCS-2.
    pub(crate) ucs2: bool,
    /// The explanation of UCS-2 and its cost.
    pub(crate) ucs2_reason: String,
    /// The characters outside the GSM alphabet.
    pub(crate) non_gsm: Vec<NonGsmChar>,
    /// Whether some of them can be replaced.
    pub(crate) replaceable: bool,
    /// The text with these characters marked; empty when there are none.
    pub(crate) spans: Vec<TextSpan>,
}

/// A character outside the GSM alphabet.
pub(crate) struct NonGsmChar {
    /// The character; empty when it is invisible.
    pub(crate) shown: String,
    /// The name; empty when the character speaks for itself.
    pub(crate) name: String,
    /// The suggested replacement.
    pub(crate) replacement: String,
}

/// A part of the text, inside or outside the GSM alphabet.
pub(crate) struct TextSpan {
    pub(crate) non_gsm: bool,
    pub(crate) text: String,
    pub(crate) name: String,
}

impl MessageSize {
    pub(crate) async fn of(
        app: &DashboardState,
        request: &SessionRequest,
        form: &Form,
        text: &str,
    ) -> Result<Self, PageError> {
        let caller = &request.caller();
        let size = text::measure(text);
        let ucs2 = size.encoding == Encoding::Ucs2;
        let non_gsm = non_gsm::non_gsm_graphemes(text);
        let recipient = form.text("recipient").parse::<Recipient>().ok();
        let available = request.visitor.details.available;
        let (price, mut error) = price_of(app, (caller, available), recipient, text);
        if let Some(recipient) = recipient.filter(|_| !form.is_checked("overrideOptout"))
            && conversations::opted_out(&app.context, caller, recipient).await?
        {
            OPTED_OUT.clone_into(&mut error);
        }
        Ok(Self {
            characters: text.chars().count(),
            segments: size.parts,
            encoding: format::encoding(size.encoding),
            price,
            remaining: remaining(text, size),
            error,
            ucs2,
            ucs2_reason: if ucs2 { ucs2_reason(text, size) } else { String::new() },
            replaceable: text.chars().any(|c| non_gsm::replacement(c).is_some()),
            non_gsm: non_gsm.iter().take(MAX_LISTED).copied().map(NonGsmChar::new).collect(),
            spans: if ucs2 { spans(text) } else { Vec::new() },
        })
    }
}

/// Returns the price, and the reason why the message would be rejected.
fn price_of(
    app: &DashboardState,
    (caller, available): (&Caller, Amount),
    recipient: Option<Recipient>,
    text: &str,
) -> (String, String) {
    let Some(recipient) = recipient else {
        let free = caller.mode == Mode::Test;
        return (if free { "Free" } else { "–" }.to_owned(), String::new());
    };
    match price::quote(&app.context.settings(), caller.mode, recipient, text, None) {
        Ok(_) if caller.mode == Mode::Test => ("Free".to_owned(), String::new()),
        Ok(quote) => {
            let price = quote.part_price * quote.parts;
            let error = if price > available { NO_BALANCE.to_owned() } else { String::new() };
            (format::money(price, &caller.currency), error)
        }
        Err(error) => ("–".to_owned(), sentence(&error.to_string())),
    }
}

/// Returns how many characters still fit in the last segment.
fn remaining(text: &str, TextSize { encoding, parts, .. }: TextSize) -> String {
    let room = text::units_left(text);
    let is_double = |c: &char| match encoding {
        Encoding::Gsm7 => text::measure(c.encode_utf8(&mut [0; 4])).units == 2,
        Encoding::Ucs2 => c.len_utf16() == 2,
    };
    let doubles = text.chars().filter(is_double).count();
    let segment = if parts > 1 { format!(" in segment {parts}") } else { String::new() };
    let twice = match (doubles, encoding) {
        (0, _) => String::new(),
        (n, Encoding::Gsm7) => format!(" {n} of [ ] {{ }} ^ ~ | \\ € count as two."),
        (n, Encoding::Ucs2) => format!(" {n} emoji or rare characters count as two."),
    };
    format!("{room} characters left{segment}.{twice}")
}

/// Explains why the encoding is UCS-2, and what that costs.
fn ucs2_reason(text: &str, size: TextSize) -> String {
    let plain = non_gsm::replace_all(text);
    let without = text::measure(&plain);
    let segments = |n: u16| format!("{n} segment{}", if n == 1 { "" } else { "s" });
    match without.encoding {
        Encoding::Gsm7 if without.parts < size.parts => format!(
            "The marked characters are not in the GSM alphabet, so a segment holds 70 characters instead of 160. With \
             these characters replaced, the message would need {} instead of {}.",
            segments(without.parts),
            size.parts
        ),
        Encoding::Gsm7 | Encoding::Ucs2 => {
            "The marked characters are not in the GSM alphabet, so a segment holds 70 characters instead of 160.".to_owned()
        }
    }
}

fn spans(text: &str) -> Vec<TextSpan> {
    let span = |stretch: &Span<'_>| match stretch {
        Span::Gsm(text) => {
            TextSpan { non_gsm: false, text: (*text).to_owned(), name: String::new() }
        }
        Span::NonGsm(text) => {
            let all = non_gsm::non_gsm_graphemes(text);
            let names: Vec<_> = all.into_iter().take(MAX_LISTED).map(grapheme_name).collect();
            TextSpan { non_gsm: true, text: (*text).to_owned(), name: names.join(", ") }
        }
    };
    non_gsm::spans(text).iter().map(span).collect()
}

/// Returns the name of a character, or the character alone. An invisible one without a name is shown
/// by its code point.
fn grapheme_name(grapheme: &str) -> String {
    let mut chars = grapheme.chars();
    let (Some(c), None) = (chars.next(), chars.next()) else { return grapheme.to_owned() };
    match non_gsm::char_name(c) {
        Some(name) => name.to_owned(),
        None if is_invisible(c) => format!("U+{:04X}", u32::from(c)),
        None => c.to_string(),
    }
}

fn is_invisible(c: char) -> bool {
    c.is_whitespace() || c.is_control() || non_gsm::replacement(c) == Some("")
}

impl NonGsmChar {
    fn new(grapheme: &str) -> Self {
        let mut chars = grapheme.chars();
        let single = chars.next().filter(|_| chars.next().is_none());
        let replacement = single.and_then(non_gsm::replacement).map(|plain| match plain {
            "" => "remove".to_owned(),
            " " => "space".to_owned(),
            "\n" => "line break".to_owned(),
            plain => plain.to_owned(),
        });
        let shown = if single.is_some_and(is_invisible) { "" } else { grapheme };
        // The character alone needs no name beside it.
        let name = Some(grapheme_name(grapheme)).filter(|name| name != grapheme);
        Self {
            shown: shown.to_owned(),
            name: name.unwrap_or_default(),
            replacement: replacement.unwrap_or_default(),
        }
    }
}
