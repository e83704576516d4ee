//! The reasons why a session ends.

use crate::smpp::event_queue::EngineGone;
use crate::smpp::pdu::BadLength;
use std::io;
use std::time::Duration;

/// The reason why a session ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CloseReason {
    #[error("connection lost: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Framing(#[from] BadLength),
    #[error("no submit_sm_resp within {0:?}")]
    ResponseTimeout(Duration),
    #[error("no enquire_link_resp within {0:?}")]
    EnquireTimeout(Duration),
    #[error("the rest of a PDU did not arrive within {0:?}")]
    ReadTimeout(Duration),
    #[error("the SMSC unbound")]
    PeerUnbound,
    #[error("the SMSC no longer considers the session bound (ESME_RINVBNDSTS)")]
    BindStateLost,
    #[error("shutting down")]
    Shutdown,
    #[error("the engine has stopped")]
    EngineGone,
}

impl From<EngineGone> for CloseReason {
    fn from(_: EngineGone) -> Self {
        Self::EngineGone
    }
}
