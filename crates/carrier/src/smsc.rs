//! SMSC.
