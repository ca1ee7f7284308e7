//! Finds out from `/proc` whether a command listens on a TCP port. Opens no connection: a server would see it, and a connection
//! proves nothing about who answers. Linux only.

use std::collections::HashSet;
use std::fs::{File, read_dir, read_link};
use std::io::{BufRead as _, BufReader};

use super::PortOwner;
use super::procfs::{self, Aim};

/// The state of a socket that accepts connections (include/net/tcp_states.h).
const LISTEN: &str = "0A";

/// Says who listens on a port. `root` is the process above all commands.
pub(super) fn owner(root: i32, command: &Aim<'_>, port: u16) -> PortOwner {
    // First, since this is cheap and most looks end here while a server starts.
    let sockets = listening(port);
    if sockets.is_empty() {
        return PortOwner::Nobody;
    }
    let mut is_own = false;
    procfs::walk(root, |process, below| {
        let taken = command.takes(process, below, procfs::environ);
        // Once the port is known to be the command's own, no files of further processes are looked at.
        is_own = is_own || (taken && holds(process.pid, &sockets));
        taken
    });
    match is_own {
        true => PortOwner::Command,
        false => PortOwner::Other,
    }
}

/// The inodes of the sockets that accept connections on a port.
fn listening(port: u16) -> HashSet<String> {
    // A socket for both kinds of addresses is only in the second table.
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let tables = tables.into_iter().filter_map(|path| File::open(path).ok());
    let lines = tables.flat_map(|table| BufReader::new(table).lines().map_while(Result::ok));
    lines.filter_map(|line| inode(&line, port)).collect()
}

/// The inode in a line of `/proc/net/tcp`, if its socket accepts connections on the port.
fn inode(line: &str, port: u16) -> Option<String> {
    // Columns from 0: 1 is the local address, 3 the state, 9 the inode.
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (_, local) = fields.get(1)?.rsplit_once(':')?;
    let is_open = u16::from_str_radix(local, 16).ok()? == port && *fields.get(3)? == LISTEN;
    is_open.then(|| (*fields.get(9).unwrap_or(&"")).to_owned())
}

/// Returns true if the process has one of the sockets open.
fn holds(pid: i32, sockets: &HashSet<String>) -> bool {
    // Descriptors that may not be read count as none, so the port counts as another's.
    let open = read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    open.filter_map(|file| read_link(file.path()).ok()).any(|target| {
        let target = target.to_string_lossy();
        let inode = target
            .strip_prefix("socket:[")
            .and_then(|rest| rest.strip_suffix(']'));
        inode.is_some_and(|inode| sockets.contains(inode))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listening_sockets_of_port_have_inodes() {
        let line = |state: &str| {
            format!(
                "   0: 0100007F:1F90 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0 100 0 0 10 0"
            )
        };
        assert_eq!(inode(&line("0A"), 8080).as_deref(), Some("4242"));
        assert_eq!(inode(&line("01"), 8080), None, "a connection");
        assert_eq!(inode(&line("0A"), 8081), None, "another port");
        assert_eq!(inode("  sl  local_address rem_address   st", 8080), None);
    }

    #[test]
    fn port_belongs_to_command_that_listens() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let child = std::process::Command::new("sleep").arg("60").spawn();
        let mut child = child.unwrap();
        let me = i32::try_from(std::process::id()).unwrap();
        let command = Aim::Command {
            pid: i32::try_from(child.id()).ok(),
            marker: b"M=x",
            adopted: None,
        };
        assert_eq!(owner(me, &command, port), PortOwner::Other);
        drop(listener);
        // A child that another test is starting has the listener until its program runs.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while owner(me, &command, port) != PortOwner::Nobody && std::time::Instant::now() < end {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(owner(me, &command, port), PortOwner::Nobody);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn port_of_own_process_belongs_to_command() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let me = i32::try_from(std::process::id()).unwrap();
        assert!(holds(me, &listening(port)));
        assert!(!holds(me, &HashSet::new()));
        assert!(!holds(i32::MAX, &listening(port)), "a process that is gone");
    }

    #[test]
    fn ipv6_addresses_are_split_at_the_last_colon() {
        let line = "0: 00000000000000000000000001000000:1F90 0:0 0A 0:0 0:0 0 1000 0 77 1";
        assert_eq!(inode(line, 8080).as_deref(), Some("77"));
        assert_eq!(inode("0: 0100007F:XYZ 0:0 0A 0:0 0:0 0 1000 0 77", 8080), None);
        assert_eq!(inode("", 8080), None);
    }
}
