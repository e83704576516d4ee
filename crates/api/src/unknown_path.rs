//! Hints for requests to a path that does not exist.

/// The paths of the API below `/v1`. A test compares them with the OpenAPI document.
const PATHS: &[&str] = &[
    "send/sms",
    "messages",
    "messages/{id}",
    "messages/{id}/cancel",
    "balance",
    "inbound-messages",
    "inbound-messages/{id}",
    "optout-lists",
    "optout-lists/{id}",
    "optout-lists/{id}/numbers",
    "optout-lists/{id}/numbers/import",
    "optout-lists/{id}/numbers/{number}",
    "openapi.json",
];

/// The longest path that is corrected, in bytes.
const MAX_LENGTH: usize = 200;

/// Explains a path that does not exist: names the address that is probably meant, if there is one.
pub(crate) fn explain(path: &str) -> String {
    let mut segments: Vec<&str> = match path.len() {
        ..=MAX_LENGTH => path.split('/').filter(|segment| !segment.is_empty()).collect(),
        _ => Vec::new(),
    };
    let is_prefix = |segment: &&str| ["api", "v1"].iter().any(|p| segment.eq_ignore_ascii_case(p));
    let prefixes = segments.iter().take_while(|segment| is_prefix(segment)).count();
    segments.drain(..prefixes);
    let is_campaign = |name: &&str| ["campaign", "campaigns"].contains(name);
    if segments.iter().take(2).any(is_campaign) {
        return "Campaigns are not available yet.".to_owned();
    }
    match PATHS.iter().find_map(|path| fill(path, &segments)) {
        Some(meant) => {
            format!("There is no such path. The address of this endpoint is '/v1{meant}'.")
        }
        None => "There is no such path. All endpoints are listed at /docs.".to_owned(),
    }
}

/// Returns the path with its parameters taken from `segments`, if they match.
fn fill(path: &str, segments: &[&str]) -> Option<String> {
    let mut filled = String::new();
    let mut segments = segments.iter();
    for name in path.split('/') {
        let segment = segments.next()?;
        filled.push('/');
        match name {
            name if name.starts_with('{') => filled.push_str(segment),
            name if segment.eq_ignore_ascii_case(name) => filled.push_str(name),
            _ => return None,
        }
    }
    segments.next().is_none().then_some(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_that_is_meant_is_named() {
        for (path, meant) in [
            ("/send/sms", "/v1/send/sms"),
            ("/v1/send/sms/", "/v1/send/sms"),
            ("//v1/send/sms", "/v1/send/sms"),
            ("/v1/v1/send/sms", "/v1/send/sms"),
            ("/api/v1/send/sms", "/v1/send/sms"),
            ("/V1/Send/SMS", "/v1/send/sms"),
            ("/messages/Ab1/", "/v1/messages/Ab1"),
            (
                "/optout-lists/default/numbers/447700900123",
                "/v1/optout-lists/default/numbers/447700900123",
            ),
            ("/openapi.json", "/v1/openapi.json"),
        ] {
            let expected =
                format!("There is no such path. The address of this endpoint is '{meant}'.");
            assert_eq!(explain(path), expected, "{path}");
        }
    }

    #[test]
    fn campaigns_are_not_available_yet() {
        for path in
            ["/v1/send/campaign", "/v1/campaigns", "/v1/campaigns/1/stats", "/send/campaign/"]
        {
            assert_eq!(explain(path), "Campaigns are not available yet.", "{path}");
        }
    }

    #[test]
    fn other_paths_lead_to_the_reference() {
        let long = format!("/messages/{}", "x".repeat(1_000));
        for path in ["/", "/v1", "/v1/send", "/v1/send/mms", "/v1/send/sms/x", "/sms", &long] {
            let expected = "There is no such path. All endpoints are listed at /docs.";
            assert_eq!(explain(path), expected, "{path}");
        }
    }
}
