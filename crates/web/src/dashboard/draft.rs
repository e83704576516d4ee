//! A draft: a message as somebody typed it into a form, and why it can't be sent.

use crate::body::{out_of_range, sentence};
use crate::dashboard::form::{Faults, Form};
use crate::dashboard::refusal::Refusal;
use crate::dashboard::shell::Notice;
use crate::sending;
use heliograph_domain::secret;
use heliograph_service::error::Error;
use heliograph_service::messages::{DEFAULT_VALIDITY, Send};
use heliograph_service::once::Once;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;
use uuid::Uuid;

/// The field for what is wrong with none of the fields.
const WHOLE: &str = "";

/// What the fields of a draft are called.
const FIELDS: [&str; 7] =
    ["recipient", "originator", "text", "reference", "validity", "maxParts", "overrideOptout"];

const OPTED_OUT: &str = "This person opted out (STOP), so nothing was sent. They hear from you again once they write \
                         START.";
const NO_BALANCE: &str = "The balance does not cover this message, so nothing was sent. Ask the operator of this \
                          service to top it up.";
const SENT_OTHERWISE: &str = "This form was sent before with something else in it, and that was sent. Send it again if \
                              this is one message more.";

/// Reads a draft; what is wrong is noted beside its fields.
pub(crate) fn read(form: &Form, faults: &mut Faults) -> Option<Send> {
    let recipient = parsed(form, "recipient", faults);
    let originator = parsed(form, "originator", faults);
    let text = text(form);
    if text.trim().is_empty() {
        faults.add("text", sending::NO_TEXT);
    }
    let reference = Some(form.text("reference")).filter(|r| !r.is_empty());
    if let Some(why) = reference.and_then(sending::bad_reference) {
        faults.add("reference", why);
    }
    let validity = number(form, "validity", &sending::VALIDITY, faults);
    let validity = validity.and_then(|seconds| u64::try_from(seconds).ok());
    let max_parts = number(form, "maxParts", &sending::MAX_PARTS, faults);
    if !faults.is_empty() {
        return None;
    }
    Some(Send {
        originator: originator?,
        recipient: recipient?,
        text,
        reference: reference.map(str::to_owned),
        validity: validity.map_or(DEFAULT_VALIDITY, Duration::from_secs),
        max_parts: max_parts.and_then(|most| u16::try_from(most).ok()),
        block_optout: !form.ticked("overrideOptout"),
    })
}

/// The text as it is sent: browsers end lines in their own way.
pub(crate) fn text(form: &Form) -> String {
    form.raw("text").replace("\r\n", "\n")
}

fn parsed<T: FromStr<Err: ToString>>(
    form: &Form,
    name: &'static str,
    faults: &mut Faults,
) -> Option<T> {
    let text = form.text(name);
    text.parse().map_err(|e: T::Err| faults.add(name, sentence(&e.to_string()))).ok()
}

/// A number that may be left out.
fn number(
    form: &Form,
    name: &'static str,
    bounds: &RangeInclusive<i64>,
    faults: &mut Faults,
) -> Option<i64> {
    let text = form.text(name);
    let number = text.parse().ok().filter(|n| bounds.contains(n));
    if number.is_none() && !text.is_empty() {
        faults.add(name, out_of_range(bounds));
    }
    number
}

/// What makes a form that is sent twice send one message: the name that its page gave it, and what it says.
pub(crate) fn once(form: &Form) -> Result<Once, Refusal> {
    let name: Uuid = form.text("once").parse().map_err(|_| Refusal::bad_form())?;
    let said: Vec<_> = FIELDS.iter().map(|field| form.raw(field)).collect();
    let fingerprint = secret::fingerprint(said.join("\0").as_bytes());
    Ok(Once { key: format!("page {name}"), fingerprint })
}

/// What is wrong with none of the fields, to be said above them.
pub(crate) fn notice(faults: &Faults) -> Option<Notice> {
    Some(faults.of(WHOLE)).filter(|why| !why.is_empty()).map(Notice::bad)
}

/// Says beside the field why a draft was not sent, where it can be helped there.
pub(crate) fn explain(error: Error, faults: &mut Faults) -> Result<(), Refusal> {
    match error {
        Error::RecipientOptedOut => faults.add("recipient", OPTED_OUT),
        Error::DestinationNotAllowed => faults.add("recipient", sentence(&error.to_string())),
        Error::TooManyParts { .. } => faults.add("text", sentence(&error.to_string())),
        Error::InsufficientBalance => faults.add(WHOLE, NO_BALANCE),
        Error::IdempotencyKeyReused => faults.add(WHOLE, SENT_OTHERWISE),
        other => return Err(other.into()),
    }
    Ok(())
}
