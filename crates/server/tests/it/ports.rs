//! Ports for what has to listen at a known place, perhaps again and again.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

/// A port that nobody listens on, and that no other test takes while this lives.
pub(crate) struct Port {
    pub(crate) number: u16,
    /// Others look whether they can have this, too.
    _token: UdpSocket,
}

impl Port {
    /// One below the range from which the system gives ports away.
    pub(crate) fn reserve() -> Self {
        loop {
            let number = fastrand::u16(10_000..32_000);
            let address = (Ipv4Addr::LOCALHOST, number);
            if let Ok(token) = UdpSocket::bind(address)
                && TcpListener::bind(address).is_ok()
            {
                return Self { number, _token: token };
            }
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }
}
