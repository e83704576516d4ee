//! Known devices: browsers that a person has signed in with before. Each has a signed cookie, so that
//! wrong passwords from elsewhere do not keep the person out.

use crate::kernel::context::Context;
use crate::kernel::error::Result;
use async_recursion::async_recursion as boxed;
use heliograph_domain::secret::Token;
use heliograph_domain::time::Timestamp;
use std::time::Duration;

/// The time for which a device is known: a year.
pub const LIFETIME: Duration = Duration::from_secs(365 * 86_400);

/// Returns the value of the cookie for a browser that this person has just signed in with.
#[boxed]
pub async fn remember(cx: &Context, email: &str) -> Result<String> {
    let (id, now) = (cx.token()?, cx.db.now().millis());
    let signature = signature(cx, email, now, &id).await?;
    Ok(format!("{now}.{}.{}", id.reveal(), signature.reveal()))
}

/// Returns the id of the device if it is known for this person. The comparison is of hashes, so its
/// time tells nothing.
#[boxed]
pub async fn recognize(cx: &Context, email: &str, cookie: &str) -> Result<Option<String>> {
    let mut parts = cookie.splitn(3, '.');
    let at = parts.next().and_then(|at| at.parse().ok());
    let mut token = || parts.next().and_then(Token::parse);
    let (Some(at), Some(id), Some(signed)) = (at, token(), token()) else { return Ok(None) };
    let fresh = cx.db.now() < Timestamp(at).after(LIFETIME);
    let right = signature(cx, email, at, &id).await?.hash() == signed.hash();
    Ok((fresh && right).then(|| id.reveal().to_owned()))
}

async fn signature(cx: &Context, email: &str, at: i64, id: &Token) -> Result<Token> {
    let text = format!("{at} {} {email}", id.reveal());
    Ok(Token::from_random(&cx.db.read().await?.derive("known device", &text)?))
}
