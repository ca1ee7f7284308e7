//! How far an internet address is. A URL that a model or a server names must not reach programs on this machine or machines of the local
//! network (GUARANTEES.md, 87).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How far from the internet an address is, the nearest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// The public internet (IANA special-purpose address registries). An address of an unknown range is not public.
    Public,
    /// The local network, and ranges that proxies on this machine give to names.
    Private,
    /// This machine.
    Loopback,
    /// Link-local addresses, among them those of cloud metadata, and addresses of no machine.
    Special,
}

impl Reach {
    /// The reach of an address. An IPv6 address that leads to an IPv4 address has the reach of that.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => match embedded(address) {
                Some(inner) => Self::of_v4(inner),
                None => Self::of_v6(address),
            },
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        let [a, b, c, _] = address.octets();
        let is_shared = a == 100 && (64..128).contains(&b);
        // Meant for benchmarks; proxies of whole machines answer every name with an address of it.
        let is_benchmark = a == 198 && (18..20).contains(&b);
        let is_special = a == 0
            || a >= 224
            || a == 192 && b == 0 && c == 0
            || a == 192 && b == 88 && c == 99
            || address.is_link_local()
            || address.is_documentation();
        if address.is_loopback() {
            Self::Loopback
        } else if address.is_private() || is_shared || is_benchmark {
            Self::Private
        } else if is_special {
            Self::Special
        } else {
            Self::Public
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        let [a, b, ..] = address.segments();
        // Only global unicast (2000::/3) is public, without documentation, benchmarks and ORCHIDs.
        let is_special = a == 0x2001 && (b < 0x0200 || b == 0x0db8) || a == 0x3fff && b < 0x1000;
        if address.is_loopback() {
            Self::Loopback
        } else if address.is_unique_local() {
            Self::Private
        } else if a & 0xe000 == 0x2000 && !is_special {
            Self::Public
        } else {
            Self::Special
        }
    }
}

/// The IPv4 address that an IPv6 address leads to: mapped, compatible, NAT64, 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let from = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => Some(from(g, h)),
        // `::` and `::1` are addresses of their own.
        (0, 0, 0, 0, 0, 0) if g != 0 => Some(from(g, h)),
        (0x2002, ..) => Some(from(b, c)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_their_reach() {
        let table = [
            (
                Reach::Public,
                "1.1.1.1 93.184.216.34 172.32.0.1 2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808",
            ),
            (
                Reach::Private,
                "10.1.2.3 172.16.0.1 192.168.1.1 100.64.0.1 198.18.0.1 fc00::1 fd12::1 ::ffff:10.0.0.1 64:ff9b::a00:1",
            ),
            (
                Reach::Loopback,
                "127.0.0.1 127.9.9.9 ::1 ::ffff:127.0.0.1 ::7f00:1 2002:7f00:1::",
            ),
            (
                Reach::Special,
                "169.254.169.254 0.0.0.0 192.0.0.1 192.88.99.1 224.0.0.1 240.0.0.1 255.255.255.255 203.0.113.7 :: fe80::1 \
                 ff02::1 2001:db8::1 2001::1 3fff::1 100::1 64:ff9b:1::1",
            ),
        ];
        for (reach, addresses) in table {
            for address in addresses.split_whitespace() {
                assert_eq!(Reach::of(address.parse().unwrap()), reach, "{address}");
            }
        }
    }
}
