//! The first-run banner: creates a demo account and prints how to use it. Secrets are printed only on
//! a terminal: elsewhere a log collector would keep them.

use crate::output;
use anyhow::Context as _;
use heliograph_domain::account::{Mode, Scopes};
use heliograph_domain::id::AccountId;
use heliograph_service::identity::accounts::{self, DEMO};
use heliograph_service::identity::api_keys::{self, KeySpec};
use heliograph_service::identity::magic_links::{self, MagicLinkKind};
use heliograph_service::kernel::audit::Actor;
use heliograph_service::kernel::context::Context;
use std::io::IsTerminal;

/// The places that the banner names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// The URL of the service, without a trailing slash.
    pub(crate) base: &'a str,
    /// The data directory.
    pub(crate) data: &'a str,
}

/// Creates the demo account and prints the banner if no account exists yet.
pub(crate) async fn print_once(
    context: &Context,
    currency: &str,
    Place { base, data }: Place<'_>,
) -> anyhow::Result<()> {
    if !accounts::list(context).await?.is_empty() {
        return Ok(());
    }
    let account = accounts::create(context, DEMO, currency, true).await?;
    let account = account.context("failed to create the demo account")?;
    let (sign_in, key) = match std::io::stdout().is_terminal() {
        true => secrets(context, account, base).await?,
        false => commands(),
    };
    output::stdout(&format!(
        r#"
Welcome to Heliograph! This message is shown only once.

  Sign in to the dashboard, which includes a virtual phone:
    {sign_in}

  Test API key (free; sends only to the simulated carrier):
    {key}

  Send your first message:
    curl -i {base}/v1/send/sms -H 'Authorization: Bearer {shown}' -H 'Content-Type: application/json' -d '{{"originator":"Heliograph","recipient":"+447700900123","text":"Hello, world"}}'

  Check its status, with the id from the response:
    curl {base}/v1/messages/ID -H 'Authorization: Bearer {shown}'

  API reference:
    {base}/docs

  Everything is stored in:
    {data}

  To sign in to the demo account later, run 'heliograph account link --email {DEMO}'.
"#,
        shown = if key.starts_with("hg_") { &key } else { "KEY" },
    ));
    Ok(())
}

/// Creates a sign-in link and a test key.
async fn secrets(
    context: &Context,
    account: AccountId,
    base: &str,
) -> anyhow::Result<(String, String)> {
    let random = random_bytes()?;
    let by = Actor::operator(account);
    let name = "first key".parse()?;
    let spec = KeySpec { mode: Mode::Test, scopes: Scopes::ALL, name: &name };
    let (_, key) = api_keys::create(context, &by, spec, &random).await?;
    let link = magic_links::create(context, DEMO, MagicLinkKind::SignIn).await?;
    let link = magic_links::path(MagicLinkKind::SignIn, &link);
    Ok((format!("{base}{link}   (works once, for 24 hours)"), key.reveal().to_owned()))
}

/// Returns the commands that create a sign-in link and a test key.
fn commands() -> (String, String) {
    let link = format!("heliograph account link --email {DEMO}");
    (link, format!("heliograph key create --account {DEMO}   (prints KEY)"))
}

/// Returns random bytes for one API key from the operating system.
pub(crate) fn random_bytes() -> anyhow::Result<[u8; 64]> {
    let mut random = [0; 64];
    getrandom::fill(&mut random)
        .context("failed to read random bytes from the operating system")?;
    Ok(random)
}
