//! What a text comes to: characters, parts, encoding and price, and which characters make it dear.

use crate::app::App;
use crate::body::sentence;
use crate::dashboard::form::Form;
use crate::dashboard::refusal::Refusal;
use crate::dashboard::visit::Visit;
use heliograph_domain::account::Mode;
use heliograph_domain::money::Amount;
use heliograph_domain::phone::Recipient;
use heliograph_domain::text::foreign::{self, Stretch};
use heliograph_domain::text::{self, Encoding, Size};
use heliograph_service::caller::Caller;
use heliograph_service::{conversations, price};

/// Characters that are named; a text in another alphabet has many.
const NAMED: usize = 6;
const OUT: &str =
    "This person opted out (STOP): it would be refused, unless you override that below.";
const DEAR: &str = "The balance does not cover it. Whoever operates this service adds credit.";

pub(crate) struct Count {
    pub(crate) characters: usize,
    pub(crate) parts: u16,
    pub(crate) encoding: &'static str,
    pub(crate) price: String,
    /// How many more fit.
    pub(crate) left: String,
    /// What would keep it from being sent.
    pub(crate) wrong: String,
    /// It is sent as UCS-2.
    pub(crate) ucs2: bool,
    /// Why, and what that costs.
    pub(crate) why: String,
    /// The characters that make it so.
    pub(crate) culprits: Vec<Culprit>,
    /// Some of them have a plain form.
    pub(crate) can_be_plain: bool,
    /// The text with these characters marked; empty when there are none.
    pub(crate) marked: Vec<Piece>,
}

/// A character that the GSM alphabet lacks.
pub(crate) struct Culprit {
    /// As it looks; empty when it can't be seen.
    pub(crate) shown: String,
    pub(crate) name: String,
    /// What to write instead.
    pub(crate) instead: String,
}

/// A stretch of the text.
pub(crate) struct Piece {
    pub(crate) special: bool,
    pub(crate) text: String,
    pub(crate) name: String,
}

impl Count {
    pub(crate) async fn of(
        app: &App,
        visit: &Visit,
        form: &Form,
        text: &str,
    ) -> Result<Self, Refusal> {
        let caller = &visit.caller();
        let size = text::measure(text);
        let ucs2 = size.encoding == Encoding::Ucs2;
        let culprits = foreign::culprits(text);
        let recipient = form.text("recipient").parse::<Recipient>().ok();
        let available = visit.visitor.signed.available;
        let (price, mut wrong) = priced(app, (caller, available), recipient, text);
        if let Some(recipient) = recipient.filter(|_| !form.ticked("overrideOptout"))
            && conversations::opted_out(&app.context, caller, recipient).await?
        {
            OUT.clone_into(&mut wrong);
        }
        Ok(Self {
            characters: text.chars().count(),
            parts: size.parts,
            encoding: size.encoding.name(),
            price,
            left: left(text, size),
            wrong,
            ucs2,
            why: if ucs2 { why(text, size) } else { String::new() },
            can_be_plain: culprits.iter().any(|c| foreign::plain(*c).is_some()),
            culprits: culprits.iter().take(NAMED).map(|c| Culprit::new(*c)).collect(),
            marked: if ucs2 { marked(text) } else { Vec::new() },
        })
    }
}

/// What it costs, and what is against it.
fn priced(
    app: &App,
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
            let wrong = if price > available { DEAR.to_owned() } else { String::new() };
            (format!("{price} {}", caller.currency), wrong)
        }
        Err(error) => ("–".to_owned(), sentence(&error.to_string())),
    }
}

/// How full the last part is.
fn left(text: &str, Size { encoding, parts, units }: Size) -> String {
    let room = text::room(text);
    let is_double = |c: &char| match encoding {
        Encoding::Gsm7 => text::measure(c.encode_utf8(&mut [0; 4])).units == 2,
        Encoding::Ucs2 => c.len_utf16() == 2,
    };
    let doubles = text.chars().filter(is_double).count();
    let of = if parts > 1 { " of the last part" } else { "" };
    let twice = match (doubles, encoding) {
        (0, _) => String::new(),
        (n, Encoding::Gsm7) => format!(" {n} of [ ] {{ }} ^ ~ | \\ € count twice."),
        (n, Encoding::Ucs2) => format!(" {n} emoji or rare signs count twice."),
    };
    format!("{units} places taken, {room} left{of}.{twice}")
}

/// Why it is UCS-2, and what that costs.
fn why(text: &str, size: Size) -> String {
    let plain = foreign::plainly(text);
    let without = text::measure(&plain);
    let parts = |n: u16| format!("{n} part{}", if n == 1 { "" } else { "s" });
    match without.encoding {
        Encoding::Gsm7 if without.parts < size.parts => format!(
            "The marked characters are not in the GSM alphabet, so a part holds 70 characters and not 160. Written \
             plainly, it would be {} and not {}.",
            parts(without.parts),
            size.parts
        ),
        Encoding::Gsm7 | Encoding::Ucs2 => {
            "The marked characters are not in the GSM alphabet, so a part holds 70 characters and not 160.".to_owned()
        }
    }
}

fn marked(text: &str) -> Vec<Piece> {
    let piece = |stretch: &Stretch<'_>| match stretch {
        Stretch::Gsm(text) => {
            Piece { special: false, text: (*text).to_owned(), name: String::new() }
        }
        Stretch::Foreign(text) => {
            let names: Vec<_> =
                foreign::culprits(text).into_iter().take(NAMED).map(named).collect();
            Piece { special: true, text: (*text).to_owned(), name: names.join(", ") }
        }
    };
    foreign::stretches(text).iter().map(piece).collect()
}

/// The name of a character, or its code point.
fn named(c: char) -> String {
    let code = format!("U+{:04X}", u32::from(c));
    foreign::name(c).map_or(code.clone(), |name| format!("{name} ({code})"))
}

impl Culprit {
    fn new(c: char) -> Self {
        let invisible = c.is_whitespace() || c.is_control() || foreign::plain(c) == Some("");
        let instead = foreign::plain(c).map(|plain| match plain {
            "" => "leave it out".to_owned(),
            " " => "an ordinary space".to_owned(),
            "\n" => "an ordinary line break".to_owned(),
            plain => plain.to_owned(),
        });
        Self {
            shown: if invisible { String::new() } else { c.to_string() },
            name: named(c),
            instead: instead.unwrap_or_default(),
        }
    }
}
