//! The problem codes of the API, each with its HTTP status, title and documentation.

use axum::http::StatusCode;

/// The documentation of a problem code, used by responses, the OpenAPI document and `/docs/errors`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProblemInfo {
    /// The HTTP status of every response with this code.
    pub(crate) status: StatusCode,
    /// The `code` on the wire.
    pub(crate) name: &'static str,
    /// A short title for people.
    pub(crate) title: &'static str,
    /// An explanation of the cause.
    pub(crate) meaning: &'static str,
    /// Advice to the client.
    pub(crate) remedy: &'static str,
}

macro_rules! codes {
    ($($id:ident = $status:ident, $name:literal, $title:literal, $meaning:literal, $remedy:literal;)+) => {
        /// The machine-readable reason of a failed request.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub(crate) enum ProblemCode {
            $($id,)+
        }

        impl ProblemCode {
            /// All codes, ordered by status.
            pub(crate) const ALL: &[Self] = &[$(Self::$id,)+];

            /// Returns the status and the texts of this code.
            pub(crate) const fn info(self) -> ProblemInfo {
                match self {
                    $(Self::$id => ProblemInfo {
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
    InvalidRequest = BAD_REQUEST, "invalid_request", "Invalid request",
        "The body is not a JSON object or a CSV file, a header is invalid, or a field or parameter \
         is unknown, missing, of the wrong type or out of range. Nothing was stored. `errors` \
         lists every invalid value with its location and its own code.",
        "Fix the values named in `detail` and `errors`, then send the request again. Retrying it \
         unchanged fails again.";
    Unauthenticated = UNAUTHORIZED, "unauthenticated", "Invalid API key",
        "The `Authorization: Bearer <API key>` header is missing or malformed, or the key is \
         unknown or revoked. The response is the same in all of these cases.",
        "Check the key. It starts with `hg_live_` or `hg_test_` and is shown only once, when it is \
         created. Create a new key to replace a lost one.";
    InsufficientBalance = PAYMENT_REQUIRED, "insufficient_balance", "Insufficient balance",
        "The account balance is lower than the price of this message. Nothing was stored or \
         charged.",
        "Top up the account and send the request again. Test keys cost nothing and reach only the \
         simulated carrier.";
    ScopeMissing = FORBIDDEN, "scope_missing", "Missing scope",
        "The key is valid but lacks the scope that this operation requires: `send`, `read` or \
         `manage`. `detail` names the missing scope.",
        "Use a key that has the scope, or create one.";
    RecipientOptedOut = FORBIDDEN, "recipient_opted_out", "Recipient opted out",
        "The recipient is on the account's default opt-out list: they replied STOP, or the number \
         was added or imported. Nothing was stored.",
        "Do not send to this number. To send a message that recipients must get despite an \
         opt-out, set `\"blockOptout\": false`; make sure that the law allows it.";
    DestinationNotAllowed = FORBIDDEN, "destination_not_allowed", "Destination not allowed",
        "No carrier is configured for this number. Nothing was stored.",
        "Check the country code. If it is correct, ask the operator of this service to add a \
         route.";
    SenderNotAllowed = FORBIDDEN, "sender_not_allowed", "Originator not allowed",
        "The originator is a number that the operator has assigned to another account, which would \
         get the replies. Nothing was stored.",
        "Use a number that is assigned to your account, or a name. Ask the operator to assign the \
         number to your account if it is yours.";
    NotFound = NOT_FOUND, "not_found", "Not found",
        "The path is wrong, the resource was deleted, or it belongs to another account or mode. \
         Live keys cannot access test data, and test keys cannot access live data.",
        "Check the path and the id, and use a key of the mode in which the resource was created.";
    MethodNotAllowed = METHOD_NOT_ALLOWED, "method_not_allowed", "Method not allowed",
        "The path exists but does not support this method. The `Allow` header lists the supported \
         methods.",
        "Use one of the methods in `Allow`.";
    RequestTimeout = REQUEST_TIMEOUT, "request_timeout", "Request timeout",
        "The body did not arrive within 30 seconds. Nothing was stored.",
        "Send the request again. If it keeps timing out, check the connection.";
    Conflict = CONFLICT, "conflict", "Conflict with the current state",
        "The request is well-formed but conflicts with the current state of the account. `detail` \
         names the cause.",
        "Resolve the cause named in `detail`. Retrying the request unchanged fails again.";
    RequestInFlight = CONFLICT, "request_in_flight", "Request in progress",
        "An earlier request with this `Idempotency-Key` is still being processed. This request had \
         no effect.",
        "Wait a moment, then retry with the same key and body to get the response of the first \
         request.";
    NotCancellable = CONFLICT, "not_cancellable", "The message can no longer be cancelled",
        "At least one part of the message was sent or is being sent to the carrier, or the message \
         already has a final status. The message was not changed.",
        "Parts that a carrier accepted cannot be recalled. Follow the message with `GET \
         /v1/messages/{id}`.";
    PayloadTooLarge = PAYLOAD_TOO_LARGE, "payload_too_large", "Payload too large",
        "The body exceeds the limit of this operation: 1 MiB of JSON, or 16 MiB of CSV. Nothing \
         was stored.",
        "Send less data per request. Split a large CSV file and repeat its header row in each \
         part.";
    UnsupportedMediaType = UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "Unsupported media type",
        "The `Content-Type` header is missing, or names a media type or character set that this \
         operation does not accept, or the body is compressed. Nothing was stored.",
        "Send JSON as `Content-Type: application/json` and CSV files as `Content-Type: text/csv`, \
         in UTF-8 and without `Content-Encoding`.";
    IdempotencyKeyReused = UNPROCESSABLE_ENTITY, "idempotency_key_reused", "Idempotency key reused",
        "This `Idempotency-Key` was used with a different body within the last 24 hours. This \
         request had no effect.",
        "Use a new key for each new request. To retry a request, send exactly the same body.";
    RateLimited = TOO_MANY_REQUESTS, "rate_limited", "Too many requests",
        "The API key exceeded its rate limit, or the account the number of test messages that it \
         may send in a day. `detail` tells which. This request had no effect.",
        "Wait for the number of seconds in `Retry-After`, then retry. Spread requests over time \
         instead of sending them in bursts.";
    HeadersTooLarge = REQUEST_HEADER_FIELDS_TOO_LARGE, "headers_too_large", "Request headers too large",
        "The request line and the headers exceed 32 KiB, or there are more than 100 headers.",
        "Send fewer or shorter headers. Cookies of other services on the same host are a frequent \
         cause.";
    Internal = INTERNAL_SERVER_ERROR, "internal", "Internal error",
        "An unexpected error occurred in the service. The log of the service has it under the \
         `requestId` of the response.",
        "Retry once, with the same `Idempotency-Key` if the request sends a message. If it fails \
         again, report the `requestId` to the operator.";
    Overloaded = SERVICE_UNAVAILABLE, "overloaded", "Service unavailable",
        "The service is overloaded or shutting down, or the database is unavailable. Nothing was \
         stored, unless `detail` says that the outcome is unknown.",
        "Retry after the number of seconds in `Retry-After`. With the same `Idempotency-Key`, \
         nothing is ever sent twice.";
}

impl ProblemCode {
    /// Returns the path of the documentation page of this code.
    pub(crate) fn docs_path(self) -> String {
        format!("/docs/errors/{}", self.info().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    #[test]
    fn problem_table_is_current() {
        let mut table = String::new();
        for code in ProblemCode::ALL {
            let ProblemInfo { status, name, title, meaning, remedy } = code.info();
            let status = status.as_u16();
            writeln!(table, "{status} {name} ({title})\n    {meaning}\n    {remedy}").unwrap();
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn codes_are_ordered_by_status_and_named_once() {
        let entries: Vec<_> = ProblemCode::ALL.iter().map(|c| c.info()).collect();
        assert!(entries.is_sorted_by_key(|e| e.status.as_u16()));
        let names: std::collections::BTreeSet<_> = entries.iter().map(|e| e.name).collect();
        assert_eq!(names.len(), entries.len());
    }
}
