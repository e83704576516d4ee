//! The fields of a message in a form, their validation, and errors of sending.

use crate::error_page::PageError;
use crate::form::{FieldErrors, Form};
use crate::layout::Notice;
use crate::reasons;
use heliograph_domain::fields::{MessageText, Validity};
use heliograph_domain::secret;
use heliograph_domain::wording::{limits, sentence};
use heliograph_service::kernel::error::Error;
use heliograph_service::kernel::idempotency::RequestKey;
use heliograph_service::messaging::messages::SendRequest;

/// The key for errors that belong to no single field.
const FORM_ERROR: &str = "";

/// The names of the form fields.
const FIELDS: [&str; 7] =
    ["recipient", "originator", "text", "reference", "validity", "maxParts", "overrideOptout"];

/// Reads and validates a message; adds an error to each invalid field.
pub(crate) fn read(form: &Form, errors: &mut FieldErrors) -> Option<SendRequest> {
    let recipient = form.parse("recipient", errors);
    let originator = form.parse("originator", errors);
    let text = message_text(form, errors);
    let reference = form.parse_optional("reference", errors);
    let validity: Option<Validity> = form.parse_optional("validity", errors);
    let max_parts = form.parse_optional("maxParts", errors);
    if !errors.is_empty() {
        return None;
    }
    Some(SendRequest {
        originator: originator?,
        recipient: recipient?,
        text: text?,
        reference,
        validity: validity.unwrap_or_default(),
        max_parts,
        block_optout: !form.is_checked("overrideOptout"),
    })
}

/// Parses the text of a message. White space alone, which the API accepts, is a mistake in a form.
pub(crate) fn message_text(form: &Form, errors: &mut FieldErrors) -> Option<MessageText> {
    let text = Some(text(form)).filter(|text| !text.trim().is_empty()).unwrap_or_default();
    let parsed = MessageText::try_from(text);
    parsed.map_err(|error| errors.add("text", sentence(&error.to_string()))).ok()
}

/// Returns the field “text” with line breaks as LF.
pub(crate) fn text(form: &Form) -> String {
    line_breaks(form.raw("text"))
}

/// Returns a text with line breaks as LF: browsers submit CRLF.
pub(crate) fn line_breaks(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Returns the idempotency key of a form, so that submitting it twice sends one message. The
/// fingerprint covers all fields.
pub(crate) fn idempotency_key(form: &Form) -> Result<RequestKey, PageError> {
    let values: Vec<_> = FIELDS.iter().map(|field| form.raw(field)).collect();
    let fingerprint = secret::fingerprint(values.join("\0").as_bytes());
    Ok(RequestKey { fingerprint, ..form.request_key()? })
}

/// Returns the notice for an error that belongs to no single field.
pub(crate) fn notice(errors: &FieldErrors) -> Option<Notice> {
    Some(errors.get(FORM_ERROR)).filter(|text| !text.is_empty()).map(Notice::error)
}

/// Adds an error of sending to its field; returns errors that the user cannot fix in the form.
pub(crate) fn add_error(error: Error, errors: &mut FieldErrors) -> Result<(), PageError> {
    match error {
        Error::RecipientOptedOut => errors.add("recipient", reasons::OPTED_OUT),
        Error::DestinationNotAllowed(reason) => errors.add("recipient", reasons::refused(reason)),
        Error::SenderNotAllowed => errors.add("originator", limits::SENDER_NOT_ALLOWED),
        Error::TooManyParts { parts, allowed } => {
            errors.add("text", reasons::too_many_segments(parts, allowed))
        }
        Error::LimitReached { limit, max } => {
            errors.add(FORM_ERROR, limits::limit_reached(limit, max));
        }
        Error::PriceNotCovered(shortfall) => {
            errors.add(FORM_ERROR, reasons::not_covered(&shortfall));
        }
        Error::IdempotencyKeyReused => errors.add(FORM_ERROR, reasons::ALREADY_SENT),
        other => return Err(other.into()),
    }
    Ok(())
}
