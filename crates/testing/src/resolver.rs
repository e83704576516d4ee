//! A DNS resolver that knows a few fixed names.

use heliograph_domain::egress_policy::{ResolveFuture, Resolver};

/// A resolver for `example.com` (a public address), `inside.example.com` (a private one) and
/// `both.example.com` (a public one and loopback). Other names do not exist.
#[derive(Debug)]
pub struct TestResolver;

impl Resolver for TestResolver {
    fn resolve(&self, host: String) -> ResolveFuture {
        Box::pin(async move {
            match host.as_str() {
                "example.com" => Ok(vec![[93, 184, 216, 34].into()]),
                "inside.example.com" => Ok(vec![[10, 0, 0, 1].into()]),
                "both.example.com" => Ok(vec![[93, 184, 216, 34].into(), [127, 0, 0, 1].into()]),
                _ => Err(std::io::ErrorKind::NotFound.into()),
            }
        })
    }
}
