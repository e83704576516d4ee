//! Writes down, now and then, when each API key was used last.

use heliograph_service::api_keys::Keyring;
use heliograph_service::context::Context;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// How exactly that is known to who looks; a request itself writes nothing.
const BEAT: Duration = Duration::from_secs(10);

pub(crate) async fn keep(context: Context, keyring: Keyring) {
    let mut beat = tokio::time::interval(BEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beat.tick().await;
        note(&context, &keyring).await;
    }
}

/// Writes down what is known by now.
pub(crate) async fn note(context: &Context, keyring: &Keyring) {
    if let Err(error) = keyring.flush(context).await {
        tracing::warn!(%error, "when API keys were used last is written down later");
    }
}
