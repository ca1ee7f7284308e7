//! The filter for system calls: no sockets to the outside, nothing that looks into other processes, changes the system or
//! makes a new view of it. It fails such calls as if the user had no right to them. Files are `landlock`'s business.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

use super::policy::Policy;

/// Newer system calls, whose numbers are the same on all machines.
const OPEN_TREE_ATTR: i64 = 467;
const FILE_SETATTR: i64 = 469;
/// System calls that are refused with any arguments.
const REFUSED: [i64; 56] = [
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Views of the file system.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    FILE_SETATTR,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // Other ways to do what this filter refuses.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The kernel's keys, programs, counters, memory and modules.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_syslog,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    libc::SYS_vhangup,
    // Clock and names.
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // Memory of other nodes and processes.
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
];
/// Refused on machines of the PC kind only, since others do not have them.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: [i64; 3] = [libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: [i64; 0] = [];
/// What puts letters into a terminal's input, and what a console does the same with.
const TERMINAL: [u64; 2] = [libc::TIOCSTI, libc::TIOCLINUX];
/// Calls about the scheduling of the process that their first argument names; zero is the caller. Affinity, policy and priority of
/// other processes of the same user would be open to them, and no other part of the sandbox looks at that.
const SCHEDULING: [i64; 4] = [
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
];
/// Calls that name a process, a process group or a user, and which number stands for a user: all processes of the user.
const PRIORITIES: [(i64, u64); 2] = [(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];
/// Memory, semaphores and message queues that processes share by number or name, outside of the file system. Refused where the
/// commands have no namespace of their own for them.
const SHARED_BY_NUMBER: [i64; 13] = [
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];
/// Kinds of namespaces a new process could have of its own.
const NAMESPACES: [i32; 7] = [
    // Not CLONE_NEWTIME: `clone` reads its bit as part of a signal, so only `clone3` and `unshare` take it.
    libc::CLONE_NEWNS,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWCGROUP,
];
/// Numbers from here on are those of another way to call the kernel (x32), which the filter does not know.
#[cfg(target_arch = "x86_64")]
const OTHER_NUMBERS: u32 = 0x4000_0000;

/// Confines the calling thread and all it starts. `landlock`: the version in force. `is_shaped`: true if it has namespaces of its
/// own.
///
/// # Errors
/// When the kernel has no such filters.
pub(super) fn confine(policy: &Policy, landlock: u32, is_shaped: bool) -> Result<(), String> {
    let failed = |error: seccompiler::Error| format!("The filter for system calls cannot be set: {error}");
    // Two filters, since each has one error for all its calls.
    for program in [refusals(policy, landlock, is_shaped), unknown()] {
        let program = program.map_err(|error| failed(error.into()))?;
        seccompiler::apply_filter(&program).map_err(failed)?;
    }
    Ok(())
}

type Compiled = Result<BpfProgram, seccompiler::BackendError>;

/// The filter whose calls fail with "not permitted".
fn refusals(policy: &Policy, landlock: u32, is_shaped: bool) -> Compiled {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED
        .iter()
        .chain(&REFUSED_HERE)
        .map(|call| (*call, Vec::new()))
        .collect();
    rules.insert(
        libc::SYS_ioctl,
        TERMINAL
            .iter()
            .map(|code| is(1, *code))
            .collect::<Result<_, _>>()?,
    );
    rules.insert(
        libc::SYS_clone,
        NAMESPACES
            .iter()
            .map(|flag| has(0, u64::from(flag.cast_unsigned())))
            .collect::<Result<_, _>>()?,
    );
    // Limits of other processes; zero is the caller.
    // The third argument is the new limit; without one the call only reads.
    let others = [condition(0, SeccompCmpOp::Ne, 0)?, long(2, SeccompCmpOp::Ne, 0)?];
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(others.to_vec())?]);
    let is_other = |argument| condition(argument, SeccompCmpOp::Ne, 0);
    for call in SCHEDULING {
        rules.insert(call, vec![SeccompRule::new(vec![is_other(0)?])?]);
    }
    for (call, user) in PRIORITIES {
        rules.insert(call, vec![SeccompRule::new(vec![is_other(1)?])?, is(0, user)?]);
    }
    if !is_shaped {
        rules.extend(SHARED_BY_NUMBER.map(|call| (call, Vec::new())));
    }
    rules.insert(libc::SYS_socket, sockets(policy)?);
    if !policy.unix_sockets {
        rules.insert(libc::SYS_socketpair, pairs()?);
    }
    if landlock < 3 {
        // Such a kernel does not look at who cuts a file off by its name.
        rules.insert(libc::SYS_truncate, Vec::new());
    }
    compile(rules, libc::EPERM)
}

/// The filter whose calls look as if the kernel did not have them: their arguments lie in memory, where no filter looks, and
/// libraries know another way.
fn unknown() -> Compiled {
    compile(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)
}

fn compile(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Compiled {
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno.cast_unsigned()),
        TargetArch::try_from(std::env::consts::ARCH)?,
    )?;
    let program: BpfProgram = filter.try_into()?;
    // `seccompiler` has no condition on the number of the call, so the check stands before its program.
    #[cfg(target_arch = "x86_64")]
    let program = {
        // BPF_LD, BPF_W, BPF_ABS: the number is the first member of `seccomp_data`.
        let load = sock_filter {
            code: 0x20,
            jt: 0,
            jf: 0,
            k: 0,
        };
        // BPF_JMP, BPF_JGE, BPF_K: a smaller number skips the next instruction.
        let compare = sock_filter {
            code: 0x35,
            jt: 0,
            jf: 1,
            k: OTHER_NUMBERS,
        };
        // BPF_RET, BPF_K: SECCOMP_RET_KILL_PROCESS.
        let kill = sock_filter {
            code: 0x06,
            jt: 0,
            jf: 0,
            k: 0x8000_0000,
        };
        [load, compare, kill].into_iter().chain(program).collect()
    };
    Ok(program)
}

/// Returns the rules that refuse sockets, except the kinds that the policy names. A rule without conditions means every
/// call.
fn sockets(policy: &Policy) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let mut allowed = Vec::new();
    if policy.network {
        // Addresses of the machine are asked for over netlink.
        allowed.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    if policy.unix_sockets {
        allowed.push(libc::AF_UNIX);
    }
    if allowed.is_empty() {
        return Ok(Vec::new());
    }
    let others = allowed
        .into_iter()
        .map(|family| condition(0, SeccompCmpOp::Ne, number(family)))
        .collect::<Result<Vec<_>, _>>()?;
    // Addresses are in this family; the others configure the system.
    let netlink = vec![
        condition(0, SeccompCmpOp::Eq, number(libc::AF_NETLINK))?,
        condition(2, SeccompCmpOp::Ne, number(libc::NETLINK_ROUTE))?,
    ];
    // Raw sockets see and forge packets of others. For netlink the kind means nothing.
    let raw = vec![
        condition(1, SeccompCmpOp::MaskedEq(0xf), number(libc::SOCK_RAW))?,
        condition(0, SeccompCmpOp::Ne, number(libc::AF_NETLINK))?,
    ];
    [others, netlink, raw].into_iter().map(SeccompRule::new).collect()
}

/// Pairs of sockets are pipes that go both ways, as long as they cannot send elsewhere.
fn pairs() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    // The kind is in the lower four bits; flags like SOCK_CLOEXEC are above them.
    let kind = |kind: i32| condition(1, SeccompCmpOp::MaskedEq(0xf), number(kind));
    [
        condition(0, SeccompCmpOp::Ne, number(libc::AF_UNIX))?,
        kind(libc::SOCK_DGRAM)?,
        kind(libc::SOCK_RAW)?,
    ]
    .into_iter()
    .map(|one| SeccompRule::new(vec![one]))
    .collect()
}

fn is(argument: u8, value: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![condition(argument, SeccompCmpOp::Eq, value)?])
}

fn has(argument: u8, bit: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![condition(argument, SeccompCmpOp::MaskedEq(bit), bit)?])
}

/// Compares an `int`: the kernel does not look at the upper half either.
fn condition(
    argument: u8,
    how: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, how, value)
}

fn long(argument: u8, how: SeccompCmpOp, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, how, value)
}

fn number(value: i32) -> u64 {
    u64::from(value.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use nix::errno::Errno;
    use nix::mqueue::mq_unlink;
    use wire::state::SandboxMode;

    use super::super::Sandbox;
    use super::{Policy, confine};

    #[test]
    fn shared_message_queue_is_not_removed() {
        let root = Path::new("/");
        let policy = Policy::of(&Sandbox::new(SandboxMode::ReadOnly, root), root, root);
        // Of this thread alone.
        let work = || confine(&policy, 7, false).map(|()| mq_unlink("/pinion-none"));
        let removed = std::thread::scope(|threads| threads.spawn(work).join().unwrap());
        // The C library turns the refusal of the filter into the error of a missing right.
        assert!(
            matches!(removed, Ok(Err(Errno::EACCES | Errno::EPERM))),
            "{removed:?}"
        );
    }
}
