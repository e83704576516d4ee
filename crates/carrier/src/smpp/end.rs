//! The ways in which a session can end.

use crate::smpp::outbox::EngineGone;
use crate::smpp::pdu::BadLength;
use std::io;
use std::time::Duration;

/// Why a session ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum End {
    #[error("the link broke: {0}")]
    Link(#[from] io::Error),
    #[error(transparent)]
    Framing(#[from] BadLength),
    #[error("no submit_sm_resp within {0:?}")]
    NoResponse(Duration),
    #[error("no enquire_link_resp within {0:?}")]
    Silent(Duration),
    #[error("the rest of a PDU did not come within {0:?}")]
    Stuck(Duration),
    #[error("the SMSC unbound")]
    Unbound,
    #[error("the SMSC does not know this bind any more (ESME_RINVBNDSTS)")]
    NotBound,
    #[error("shutting down")]
    Stopped,
    #[error("the engine is gone")]
    EngineGone,
}

impl From<EngineGone> for End {
    fn from(_: EngineGone) -> Self {
        Self::EngineGone
    }
}
