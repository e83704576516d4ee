//! The numbers of SMPP 3.4 that are used here: commands, statuses, optional parameters.

/// command_id (SMPP 3.4 §5.1.2.1). A response has the number of its request with the top bit set.
pub mod id {
    /// The top bit, which makes a response of a request.
    pub const RESPONSE: u32 = 0x8000_0000;
    /// generic_nack (§4.3.1): the answer to what could not even be recognised.
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

/// command_status (SMPP 3.4 §5.1.3).
pub mod status {
    /// No error.
    pub const ESME_ROK: u32 = 0x00;
    /// A body that does not fit its command.
    pub const ESME_RINVCMDLEN: u32 = 0x02;
    /// A command that is not known here.
    pub const ESME_RINVCMDID: u32 = 0x03;
    /// Not in this bind state.
    pub const ESME_RINVBNDSTS: u32 = 0x04;
    /// Already bound.
    pub const ESME_RALYBND: u32 = 0x05;
    /// The system's own trouble.
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
    /// submit_sm failed, for a reason that is not told.
    pub const ESME_RSUBMITFAIL: u32 = 0x45;
    /// Too many messages at once.
    pub const ESME_RTHROTTLED: u32 = 0x58;
    /// The receiver's temporary trouble: send it again later.
    pub const ESME_RX_T_APPN: u32 = 0x64;
    /// The receiver's permanent trouble: never send it again.
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
    /// The message id that a receipt speaks of: C-octet string.
    pub const RECEIPTED_MESSAGE_ID: u16 = 0x001E;
    /// The network's own error: one octet of network type, two of code.
    pub const NETWORK_ERROR_CODE: u16 = 0x0423;
    /// A text too long for short_message.
    pub const MESSAGE_PAYLOAD: u16 = 0x0424;
    /// What became of the message: one octet.
    pub const MESSAGE_STATE: u16 = 0x0427;
    /// Names the message that a part belongs to, with the next two: two octets (§5.3.2.22).
    pub const SAR_MSG_REF_NUM: u16 = 0x020C;
    /// How many parts that message has: one octet (§5.3.2.23).
    pub const SAR_TOTAL_SEGMENTS: u16 = 0x020E;
    /// Which of them this is, from 1: one octet (§5.3.2.24).
    pub const SAR_SEGMENT_SEQNUM: u16 = 0x020F;
    /// Ours, from the numbers that are left to vendors: whose message it is, which a reply brings
    /// back. Eight octets, between us and the simulated SMSC only.
    pub const LABEL: u16 = 0x1400;
    /// The version that the SMSC speaks: one octet, 0x34 for 3.4.
    pub const SC_INTERFACE_VERSION: u16 = 0x0210;
}

/// Bits of esm_class (SMPP 3.4 §5.2.12).
pub mod esm {
    /// Where the message type stands.
    pub const TYPE: u8 = 0x3C;
    /// A delivery receipt.
    pub const RECEIPT: u8 = 0x04;
    /// An intermediate notification.
    pub const INTERMEDIATE: u8 = 0x20;
    /// The text begins with a user data header.
    pub const UDH: u8 = 0x40;
}
