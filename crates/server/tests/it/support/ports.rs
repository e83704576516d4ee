//! Reserved ports for processes that are restarted on the same port.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

/// A free port that no other test reserves at the same time.
pub(crate) struct Port {
    pub(crate) number: u16,
    /// Other tests try to bind the same UDP port.
    _token: UdpSocket,
}

impl Port {
    /// Reserves a port below the range of ephemeral ports.
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
