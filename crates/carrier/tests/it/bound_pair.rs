//! A carrier that is bound to a scripted SMSC.

use crate::harness::{Harness, options};
use crate::scripted_peer::{ScriptedListener, ScriptedPeer};
use heliograph_carrier::carrier::CarrierEvent;
use heliograph_carrier::smpp::options::SmppOptions;

/// Returns the carrier, the bound SMSC, and the listener at which the carrier will reconnect.
pub(crate) async fn bound_pair(
    change: impl FnOnce(&mut SmppOptions),
) -> (Harness, ScriptedPeer, ScriptedListener) {
    let listener = ScriptedListener::open().await;
    let mut options = options(listener.port());
    change(&mut options);
    let mut harness = Harness::start(options);
    let peer = listener.accept_and_bind().await;
    assert_eq!(harness.event().await, CarrierEvent::Bound);
    (harness, peer, listener)
}
