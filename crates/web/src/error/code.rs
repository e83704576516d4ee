//! The table of problems: each code that an answer can carry, with its status and what it means.

use axum::http::StatusCode;

/// What is said about a code, wherever it is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The one status that it comes with.
    pub(crate) status: StatusCode,
    /// As on the wire.
    pub(crate) name: &'static str,
    /// The same in a few words, for people.
    pub(crate) title: &'static str,
    /// What happened.
    pub(crate) meaning: &'static str,
    /// What to do about it.
    pub(crate) remedy: &'static str,
}

macro_rules! codes {
    ($($id:ident = $status:ident, $name:literal, $title:literal, $meaning:literal, $remedy:literal;)+) => {
        /// Why a request was not done.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub(crate) enum Code {
            $($id,)+
        }

        impl Code {
            /// All of them, by status.
            pub(crate) const ALL: &[Self] = &[$(Self::$id,)+];

            /// What is said about it.
            pub(crate) const fn entry(self) -> Entry {
                match self {
                    $(Self::$id => Entry {
                        status: StatusCode::$status,
                        name: $name,
                        title: $title,
                        meaning: $meaning,
                        remedy: $remedy,
                    },)+
                }
            }
        }
    };
}

codes! {
    InvalidRequest = BAD_REQUEST, "invalid_request", "The request is not valid",
        "The body is not a JSON object or not a CSV file, a field or parameter is unknown, missing, of the wrong type or \
         out of bounds, or a header can't be used. Nothing was stored. Where single values are wrong, `errors` names \
         all of them at once, each with the place it is at and a code of its own.",
        "Mend what `detail` and `errors` name, and send the request again. The same request would be refused again.";
    Unauthenticated = UNAUTHORIZED, "unauthenticated", "No valid API key",
        "The header `Authorization: Bearer <API key>` is missing or malformed, or the key is unknown or revoked. \
         The answer is the same in each of these cases.",
        "Look at the key: it begins with `hg_live_` or `hg_test_` and is shown only once, when it is made. \
         A key that was lost is replaced by a new one.";
    InsufficientBalance = PAYMENT_REQUIRED, "insufficient_balance", "The balance does not cover it",
        "The account's balance is lower than the price of this message. Nothing was stored and nothing was charged.",
        "Top up the account and send the request again. A test key sends without money, to the simulated carrier only.";
    ScopeMissing = FORBIDDEN, "scope_missing", "The key may not do this",
        "The key is valid, but it lacks the scope that this operation needs: `send`, `read` or `manage`. \
         `detail` names it.",
        "Use a key that has the scope, or make one.";
    RecipientOptedOut = FORBIDDEN, "recipient_opted_out", "The recipient opted out",
        "The recipient is on the account's default opt-out list: they wrote STOP, or somebody put them there. \
         Nothing was stored.",
        "Do not send to this number. A message that people must get whatever they opted out of can be sent with \
         `\"blockOptout\": false`; make sure that the law allows it.";
    DestinationNotAllowed = FORBIDDEN, "destination_not_allowed", "No route to this number",
        "No carrier is set up to take messages for this number. Nothing was stored.",
        "Look whether the country code is right. If it is, the operator of this service has to add a route.";
    NotFound = NOT_FOUND, "not_found", "Not found",
        "There is nothing at this address: the path is mistyped, the thing was deleted, or it belongs to another \
         account or to the other mode. A live key sees no test data, and a test key no live data.",
        "Look at the path and at the id, and whether the key is of the mode in which the thing was made.";
    MethodNotAllowed = METHOD_NOT_ALLOWED, "method_not_allowed", "Method not allowed",
        "The address exists, but not for this method. The header `Allow` lists the methods that it has.",
        "Use one of the methods in `Allow`.";
    RequestTimeout = REQUEST_TIMEOUT, "request_timeout", "The body came too slowly",
        "The body did not arrive within 30 seconds. Nothing was stored.",
        "Send the whole body at once, and look at the connection if it happens again.";
    Conflict = CONFLICT, "conflict", "It does not go with what there is",
        "The request is well-formed, but does not fit the present state of things. `detail` says what is in the way.",
        "Change what is in the way, or leave it as it is. The same request would be refused again.";
    RequestInFlight = CONFLICT, "request_in_flight", "The same request is under way",
        "A request with this `Idempotency-Key` has not ended yet. This one did nothing.",
        "Wait a moment and repeat the request with the same key and body: it gets the answer of the first.";
    NotCancellable = CONFLICT, "not_cancellable", "Too late to call it back",
        "A part of the message went out or is on its way to the carrier, or the message has ended. It stays as it is.",
        "What a carrier took can't be called back. `GET /v1/messages/{id}` shows what becomes \
         of it.";
    PayloadTooLarge = PAYLOAD_TOO_LARGE, "payload_too_large", "The body is too large",
        "The body is larger than what this operation takes: 1 MiB of JSON, or 16 MiB of CSV. Nothing was stored.",
        "Send less at once. A file can be cut in several, each with the line that names the columns.";
    UnsupportedMediaType = UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "The body is of another media type",
        "The header `Content-Type` is missing, or names another media type or character set than this operation reads. \
         Nothing was stored.",
        "Send JSON as `Content-Type: application/json` and CSV files as `Content-Type: text/csv`, in UTF-8.";
    IdempotencyKeyReused = UNPROCESSABLE_ENTITY, "idempotency_key_reused",
        "The idempotency key stands for another request",
        "A request with this `Idempotency-Key` but another body was answered within the last 24 hours. \
         This one did nothing.",
        "Take a new key for each new request. To repeat one, send exactly the same bytes.";
    RateLimited = TOO_MANY_REQUESTS, "rate_limited", "Too many requests",
        "The key has made more requests than its limit allows. This one did nothing.",
        "Wait for the seconds that `Retry-After` says, then send the request again. Spread requests over time \
         rather than sending them all at once.";
    Internal = INTERNAL_SERVER_ERROR, "internal", "Internal error",
        "Something went wrong on our side. It is in the log of the service, under the `requestId` of the answer.",
        "Repeat the request once, with the same `Idempotency-Key` if it sends something. If it fails again, tell the \
         operator the `requestId`.";
    Overloaded = SERVICE_UNAVAILABLE, "overloaded", "Not now",
        "There is more to do than can be done, the database is away, or the service is shutting down. Nothing was \
         stored, unless `detail` says that it is not known.",
        "Repeat the request after the seconds that `Retry-After` says. With the same `Idempotency-Key` nothing is \
         ever sent twice.";
}

impl Code {
    /// The reference under which it is explained.
    pub(crate) fn page(self) -> String {
        format!("/docs/errors/{}", self.entry().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    #[test]
    fn the_table_of_problems() {
        let mut table = String::new();
        for code in Code::ALL {
            let Entry { status, name, title, meaning, remedy } = code.entry();
            let status = status.as_u16();
            writeln!(table, "{status} {name} ({title})\n    {meaning}\n    {remedy}").unwrap();
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn codes_are_ordered_by_status_and_named_once() {
        let entries: Vec<_> = Code::ALL.iter().map(|c| c.entry()).collect();
        assert!(entries.is_sorted_by_key(|e| e.status.as_u16()));
        let names: std::collections::BTreeSet<_> = entries.iter().map(|e| e.name).collect();
        assert_eq!(names.len(), entries.len());
    }
}
