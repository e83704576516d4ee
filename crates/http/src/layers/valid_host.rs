//! Refuses requests that do not name exactly one host.

use crate::layers::around::Around;
use axum::extract::Request;
use axum::http::{HeaderValue, Version, header};
use axum::response::Response;

/// The middleware that refuses a request without a host, or with several (RFC 9112, section 3.2):
/// of two hosts, a proxy may have checked one while this server uses the other.
#[derive(Clone, Copy, Debug)]
pub struct ValidHost {
    /// Makes the response.
    pub reject: fn() -> Response,
}

impl Around for ValidHost {
    type State = ();

    fn before(&self, request: &mut Request) -> Result<(), Box<Response>> {
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let valid = match (hosts.next(), hosts.next()) {
            (Some(host), None) => is_host(host),
            (Some(_), Some(_)) => false,
            // HTTP/1.0 has no such header.
            (None, _) => request.version() < Version::HTTP_11 || add_authority(request),
        };
        if valid { Ok(()) } else { Err(Box::new((self.reject)())) }
    }

    fn after(&self, (): (), _: &mut Response) {}
}

/// Adds the header to an HTTP/2 request, which usually has `:authority` in its place (RFC 9113,
/// section 8.3.1). Returns false if it has neither.
fn add_authority(request: &mut Request) -> bool {
    let authority = request.uri().authority().filter(|_| request.version() >= Version::HTTP_2);
    let host = authority.and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    let Some(host) = host.filter(is_host) else { return false };
    request.headers_mut().insert(header::HOST, host);
    true
}

/// Returns whether a value is a host with an optional port, by its characters (RFC 3986, section
/// 3.2.2).
fn is_host(value: &HeaderValue) -> bool {
    let valid = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~[]:%!$&'()*+,;=".contains(byte);
    !value.is_empty() && value.as_bytes().iter().all(valid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn is_valid(version: Version, uri: &str, hosts: &[&str]) -> bool {
        let mut request = Request::builder().version(version).uri(uri);
        for host in hosts {
            request = request.header(header::HOST, *host);
        }
        let mut request = request.body(Body::empty()).unwrap();
        let valid = ValidHost { reject: Response::default }.before(&mut request).is_ok();
        assert!(!valid || version < Version::HTTP_11 || request.headers().contains_key("host"));
        valid
    }

    #[test]
    fn a_request_names_one_host() {
        for host in ["test", "sms.example.com:8080", "127.0.0.1", "[::1]:8080", "a_b"] {
            assert!(is_valid(Version::HTTP_11, "/", &[host]), "{host}");
        }
        for hosts in [&[][..], &["test", "test"], &[""], &["user@test"], &["test/path"], &["a b"]] {
            assert!(!is_valid(Version::HTTP_11, "/", hosts), "{hosts:?}");
            assert!(!is_valid(Version::HTTP_11, "http://test/", hosts), "{hosts:?}");
        }
        assert!(is_valid(Version::HTTP_10, "/", &[]));
        assert!(!is_valid(Version::HTTP_10, "/", &["a", "b"]));
        assert!(is_valid(Version::HTTP_2, "https://test:1/", &[]));
        assert!(!is_valid(Version::HTTP_2, "/", &[]));
    }
}
