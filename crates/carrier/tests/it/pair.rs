//! A carrier and the scripted SMSC that it is bound to.

use crate::peer::{Door, Peer};
use crate::rig::{Rig, options};
use heliograph_carrier::carrier::Event;
use heliograph_carrier::smpp::options::SmppOptions;

/// Both, bound, and the door at which the carrier will knock again.
pub(crate) async fn pair(change: impl FnOnce(&mut SmppOptions)) -> (Rig, Peer, Door) {
    let door = Door::open().await;
    let mut options = options(door.port());
    change(&mut options);
    let mut rig = Rig::start(options);
    let peer = door.bind().await;
    assert_eq!(rig.event().await, Event::Bound);
    (rig, peer, door)
}
