//! The first minute: a demo account with a test key, told once.

use crate::output;
use anyhow::Context as _;
use heliograph_domain::account::{Mode, Scopes};
use heliograph_service::audit::Actor;
use heliograph_service::context::Context;
use heliograph_service::one_time_links::{self, Kind};
use heliograph_service::{accounts, api_keys};

/// Whom the demo account belongs to.
const DEMO: &str = "demo@localhost";

/// On the very first start, when no account exists: makes one and says how to send the first message.
pub(crate) async fn greet(context: &Context, currency: &str, base: &str) -> anyhow::Result<()> {
    if !accounts::list(context).await?.is_empty() {
        return Ok(());
    }
    let account = accounts::create(context, DEMO, currency, true).await?;
    let account = account.context("the demo account could not be made")?;
    let random = random()?;
    let (by, what) = (Actor::operator(account), (Mode::Test, Scopes::ALL));
    let (_, key) = api_keys::create(context, &by, what, "first key", &random).await?;
    let key = key.reveal();
    let link = one_time_links::make(context, DEMO, Kind::SignIn).await?;
    let link = link.reveal();
    output::result(&format!(
        r#"
Welcome to Heliograph. This is shown once.

  The dashboard, with a phone to look at (this link works once, within a day):
    {base}/sign-in/{link}

  A test key (it costs nothing and reaches only the simulated carrier):
    {key}

  Send the first message:
    curl -i {base}/v1/send/sms -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -d '{{"originator":"Heliograph","recipient":"+447700900123","text":"Hello, world"}}'

  See what became of it, with the id from the answer:
    curl {base}/v1/messages/ID -H 'Authorization: Bearer {key}'

  The API, field by field:
    {base}/docs

  All belongs to the account {DEMO}; 'heliograph account link --email {DEMO}' makes another link.
"#
    ));
    Ok(())
}

/// Bytes for one key, from the operating system.
pub(crate) fn random() -> anyhow::Result<[u8; 64]> {
    let mut random = [0; 64];
    getrandom::fill(&mut random).context("the operating system gives no randomness")?;
    Ok(random)
}
