//! SMPP 3.4.
