//! The constants of SMPP 3.4 in use: commands, statuses, optional parameters, esm_class bits.

/// Values of command_id (SMPP 3.4 §5.1.2.1). A response is its request with the top bit set.
pub mod id {
    /// The top bit, which marks a response.
    pub const RESPONSE: u32 = 0x8000_0000;
    /// generic_nack (§4.3.1): the response to a PDU that is not recognised.
    pub const GENERIC_NACK: u32 = 0x8000_0000;
    /// bind_receiver (§4.1.3).
    pub const BIND_RECEIVER: u32 = 0x01;
    /// bind_transmitter (§4.1.1).
    pub const BIND_TRANSMITTER: u32 = 0x02;
    /// submit_sm (§4.4.1).
    pub const SUBMIT_SM: u32 = 0x04;
    /// submit_sm_resp (§4.4.2).
    pub const SUBMIT_SM_RESP: u32 = SUBMIT_SM | RESPONSE;
    /// deliver_sm (§4.6.1).
    pub const DELIVER_SM: u32 = 0x05;
    /// deliver_sm_resp (§4.6.2).
    pub const DELIVER_SM_RESP: u32 = DELIVER_SM | RESPONSE;
    /// unbind (§4.2.1).
    pub const UNBIND: u32 = 0x06;
    /// unbind_resp (§4.2.2).
    pub const UNBIND_RESP: u32 = UNBIND | RESPONSE;
    /// bind_transceiver (§4.1.5).
    pub const BIND_TRANSCEIVER: u32 = 0x09;
    /// bind_transceiver_resp (§4.1.6).
    pub const BIND_TRANSCEIVER_RESP: u32 = BIND_TRANSCEIVER | RESPONSE;
    /// outbind (§4.1.7): has no response.
    pub const OUTBIND: u32 = 0x0B;
    /// enquire_link (§4.11.1).
    pub const ENQUIRE_LINK: u32 = 0x15;
    /// enquire_link_resp (§4.11.2).
    pub const ENQUIRE_LINK_RESP: u32 = ENQUIRE_LINK | RESPONSE;
    /// alert_notification (§4.12.1): has no response.
    pub const ALERT_NOTIFICATION: u32 = 0x102;
}

/// Values of command_status (SMPP 3.4 §5.1.3).
pub mod status {
    /// No error.
    pub const ESME_ROK: u32 = 0x00;
    /// Invalid command length.
    pub const ESME_RINVCMDLEN: u32 = 0x02;
    /// Invalid command ID.
    pub const ESME_RINVCMDID: u32 = 0x03;
    /// Incorrect bind status for this command.
    pub const ESME_RINVBNDSTS: u32 = 0x04;
    /// Already bound.
    pub const ESME_RALYBND: u32 = 0x05;
    /// System error.
    pub const ESME_RSYSERR: u32 = 0x08;
    /// Invalid source address.
    pub const ESME_RINVSRCADR: u32 = 0x0A;
    /// Invalid destination address.
    pub const ESME_RINVDSTADR: u32 = 0x0B;
    /// The bind failed.
    pub const ESME_RBINDFAIL: u32 = 0x0D;
    /// Invalid password.
    pub const ESME_RINVPASWD: u32 = 0x0E;
    /// Invalid system_id.
    pub const ESME_RINVSYSID: u32 = 0x0F;
    /// The message queue is full.
    pub const ESME_RMSGQFUL: u32 = 0x14;
    /// submit_sm failed for an unspecified reason.
    pub const ESME_RSUBMITFAIL: u32 = 0x45;
    /// Throttled: the client has exceeded its allowed message rate.
    pub const ESME_RTHROTTLED: u32 = 0x58;
    /// Invalid scheduled delivery time. Jasmin reports temporary errors with it.
    pub const ESME_RINVSCHED: u32 = 0x61;
    /// Temporary error of the receiver: send the message again later.
    pub const ESME_RX_T_APPN: u32 = 0x64;
    /// Permanent error of the receiver: do not send the message again.
    pub const ESME_RX_P_APPN: u32 = 0x65;
    /// The receiver rejects the message.
    pub const ESME_RX_R_APPN: u32 = 0x66;
    /// The message could not be delivered.
    pub const ESME_RDELIVERYFAILURE: u32 = 0xFE;
    /// Unknown error.
    pub const ESME_RUNKNOWNERR: u32 = 0xFF;
    /// Prohibited from sending to this address (SMPP 5.0 §4.7.6).
    pub const ESME_RPROHIBITED: u32 = 0x101;
}

/// Tags of optional parameters (SMPP 3.4 §5.3.2).
pub mod tag {
    /// The message_id of the message that a receipt is about: C-octet string.
    pub const RECEIPTED_MESSAGE_ID: u16 = 0x001E;
    /// The network's own error: one octet of network type, two of code.
    pub const NETWORK_ERROR_CODE: u16 = 0x0423;
    /// The text of a message when it is too long for short_message (§5.3.2.32).
    pub const MESSAGE_PAYLOAD: u16 = 0x0424;
    /// The state of the message in a receipt (§5.2.28): one octet.
    pub const MESSAGE_STATE: u16 = 0x0427;
    /// The reference number that all parts of a concatenated message share: two octets
    /// (§5.3.2.22).
    pub const SAR_MSG_REF_NUM: u16 = 0x020C;
    /// The number of parts of a concatenated message: one octet (§5.3.2.23).
    pub const SAR_TOTAL_SEGMENTS: u16 = 0x020E;
    /// The number of the part in a concatenated message, from 1: one octet (§5.3.2.24).
    pub const SAR_SEGMENT_SEQNUM: u16 = 0x020F;
    /// A vendor-specific parameter of Heliograph: the label that names the owner of a message,
    /// which a reply carries back. Eight octets; only used with the simulated SMSC.
    pub const LABEL: u16 = 0x1400;
    /// The SMPP version of the SMSC: one octet, 0x34 for 3.4.
    pub const SC_INTERFACE_VERSION: u16 = 0x0210;
}

/// Bits of esm_class (SMPP 3.4 §5.2.12).
pub mod esm {
    /// The mask of the message type.
    pub const TYPE: u8 = 0x3C;
    /// A delivery receipt.
    pub const RECEIPT: u8 = 0x04;
    /// An intermediate notification.
    pub const INTERMEDIATE: u8 = 0x20;
    /// The text begins with a user data header (UDH).
    pub const UDH: u8 = 0x40;
}
