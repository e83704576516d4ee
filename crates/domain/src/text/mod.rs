//! Message text: its encodings, and the parts that it travels in.

mod encoding;
pub mod foreign;
mod gsm7;
mod parts;
mod ucs2;
mod udh;

pub use encoding::Encoding;
pub use gsm7::{decode_gsm7, first_ucs2_char};
pub use parts::{MAX_PARTS, Segment, Size, measure, room, segments};
pub use ucs2::decode_ucs2;
pub use udh::{Concat, split_udh};
