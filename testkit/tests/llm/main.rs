//! The scripted server as a client on a raw socket sees it: what replies look like (`replies`), how they fail
//! (`faults`), and the client itself (`client`).

mod client;
mod faults;
mod replies;
