//! The fields of a message in a form, their validation, and errors of sending.

use crate::error_page::PageError;
use crate::form::{FieldErrors, Form};
use crate::layout::Notice;
use heliograph_domain::message_limits;
use heliograph_domain::secret;
use heliograph_domain::wording::{out_of_range, sentence};
use heliograph_service::kernel::error::Error;
use heliograph_service::kernel::idempotency::IdempotencyKey;
use heliograph_service::messaging::messages::{DEFAULT_VALIDITY, SendRequest};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;
use uuid::Uuid;

/// The key for errors that belong to no single field.
const FORM_ERROR: &str = "";

/// The names of the form fields.
const FIELDS: [&str; 7] =
    ["recipient", "originator", "text", "reference", "validity", "maxParts", "overrideOptout"];

const OPTED_OUT: &str = "This recipient has opted out (STOP), so the message was not sent. The recipient can text START \
                         to opt back in.";
const NO_BALANCE: &str = "Insufficient balance: the message was not sent. Ask the operator of this service to add \
                          credit.";
const ALREADY_SENT: &str = "This form was already submitted with different content, and that message was sent. \
                              Submit it again to send another message.";

/// Reads and validates a message; adds an error to each invalid field.
pub(crate) fn read(form: &Form, errors: &mut FieldErrors) -> Option<SendRequest> {
    let recipient = parsed(form, "recipient", errors);
    let originator = parsed(form, "originator", errors);
    let text = text(form);
    if text.trim().is_empty() {
        errors.add("text", message_limits::TEXT_REQUIRED);
    }
    let reference = Some(form.text("reference")).filter(|r| !r.is_empty());
    if let Some(why) = reference.and_then(message_limits::reference_error) {
        errors.add("reference", why);
    }
    let validity = number(form, "validity", &message_limits::VALIDITY_SECONDS, errors);
    let validity = validity.and_then(|seconds| u64::try_from(seconds).ok());
    let max_parts = number(form, "maxParts", &message_limits::MAX_PARTS, errors);
    if !errors.is_empty() {
        return None;
    }
    Some(SendRequest {
        originator: originator?,
        recipient: recipient?,
        text,
        reference: reference.map(str::to_owned),
        validity: validity.map_or(DEFAULT_VALIDITY, Duration::from_secs),
        max_parts: max_parts.and_then(|max| u16::try_from(max).ok()),
        block_optout: !form.is_checked("overrideOptout"),
    })
}

/// Returns the text with line breaks as LF: browsers submit CRLF.
pub(crate) fn text(form: &Form) -> String {
    form.raw("text").replace("\r\n", "\n")
}

fn parsed<T: FromStr<Err: ToString>>(
    form: &Form,
    name: &'static str,
    errors: &mut FieldErrors,
) -> Option<T> {
    let text = form.text(name);
    text.parse().map_err(|e: T::Err| errors.add(name, sentence(&e.to_string()))).ok()
}

/// Reads an optional number.
fn number(
    form: &Form,
    name: &'static str,
    bounds: &RangeInclusive<i64>,
    errors: &mut FieldErrors,
) -> Option<i64> {
    let text = form.text(name);
    let number = text.parse().ok().filter(|n| bounds.contains(n));
    if number.is_none() && !text.is_empty() {
        errors.add(name, out_of_range(bounds));
    }
    number
}

/// Returns the idempotency key of a form, so that submitting it twice sends one message. The
/// fingerprint covers all fields.
pub(crate) fn idempotency_key(form: &Form) -> Result<IdempotencyKey, PageError> {
    let key: Uuid = form.text("idempotency_key").parse().map_err(|_| PageError::invalid_form())?;
    let values: Vec<_> = FIELDS.iter().map(|field| form.raw(field)).collect();
    let fingerprint = secret::fingerprint(values.join("\0").as_bytes());
    Ok(IdempotencyKey { key: format!("page {key}"), fingerprint })
}

/// Returns the notice for an error that belongs to no single field.
pub(crate) fn notice(errors: &FieldErrors) -> Option<Notice> {
    Some(errors.get(FORM_ERROR)).filter(|text| !text.is_empty()).map(Notice::error)
}

/// Adds an error of sending to its field; returns errors that the user cannot fix in the form.
pub(crate) fn add_error(error: Error, errors: &mut FieldErrors) -> Result<(), PageError> {
    match error {
        Error::RecipientOptedOut => errors.add("recipient", OPTED_OUT),
        Error::DestinationNotAllowed => errors.add("recipient", sentence(&error.to_string())),
        Error::TooManyParts { .. } => errors.add("text", sentence(&error.to_string())),
        Error::InsufficientBalance => errors.add(FORM_ERROR, NO_BALANCE),
        Error::IdempotencyKeyReused => errors.add(FORM_ERROR, ALREADY_SENT),
        other => return Err(other.into()),
    }
    Ok(())
}
