//! Message text: encodings (GSM-7, UCS-2), and splitting into parts (segments, concatenated SMS).

mod encoding;
mod gsm7;
pub mod non_gsm;
mod parts;
mod ucs2;
mod udh;

pub use encoding::Encoding;
pub use gsm7::{decode_gsm7, first_ucs2_char};
pub use parts::{MAX_CHARACTERS, MAX_PARTS, Segment, TextSize, measure, segments, units_left};
pub use ucs2::decode_ucs2;
pub use udh::{Concat, split_udh};
