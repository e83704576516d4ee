//! The carrier as a whole, over real sockets.

#[cfg(test)]
mod control;
#[cfg(test)]
mod incoming;
#[cfg(test)]
mod link;
#[cfg(test)]
mod pair;
#[cfg(test)]
mod peer;
#[cfg(test)]
mod receipts;
#[cfg(test)]
mod replies;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod road;
#[cfg(test)]
mod smsc;
#[cfg(test)]
mod soak;
#[cfg(test)]
mod window;
