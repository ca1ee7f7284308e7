//! An address without a listener. Faults of running servers are in `fault`.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

use crate::error::{Error, Result};

/// A port that is taken but refuses every connection, for as long as this value lives. (A port that was merely
/// free a moment ago could be handed to another process.)
#[derive(Debug)]
pub struct DeadPort {
    _socket: OwnedFd,
    port: u16,
}

impl DeadPort {
    /// Takes a port.
    ///
    /// # Errors
    /// If the operating system gives none.
    pub fn new() -> Result<Self> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).map_err(Error::os("socket"))?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).map_err(Error::os("bind"))?;
        let addr = getsockname(&socket).map_err(Error::os("getsockname"))?;
        let addr = SocketAddr::try_from(addr).map_err(Error::os("getsockname"))?;
        Ok(Self {
            _socket: socket,
            port: addr.port(),
        })
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}
