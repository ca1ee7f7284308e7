//! Which dialect a connection speaks: what it was told at the start, what its client shows later (dialects.md 6). The reading
//! half listens and decides, the writing half follows, each between two lines. What the dialects differ in is said by
//! `wire::dialect`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use wire::ui::UiMethod;
use wire::{Command, Dialect, SessionCommand};

use crate::parse::Inbound;

/// How lines are to be written at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Manner {
    /// The dialect, decided or not.
    pub dialect: Dialect,
    /// True if the command line or the client named the dialect; false if it was detected from its lines.
    pub chosen: bool,
    /// The explicit choice for or against linear `message_update`; none: the dialect decides.
    pub delta: Option<bool>,
    /// Which user interface frames of single dialects the client wants (dialects.md 10.4).
    pub ui: WantedUi,
    /// True if the client negotiated protocol version 2 of oh-my-pi: long lines come in chunks.
    pub chunks: bool,
    /// A line with an `id` came.
    ids: bool,
    /// One of the early dialect's commands came.
    early: bool,
    /// Another command came.
    other: bool,
}

/// Frames that are only sent where a dialect has them, or a client asks for them. None leaves it to the dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WantedUi {
    /// `setTitle`, by `PI_RPC_EMIT_TITLE` or `hello` (dialects.md 5, row 28).
    pub titles: Option<bool>,
    /// `cancel`, by `hello`.
    pub cancels: Option<bool>,
}

impl Manner {
    /// Nothing is known but this.
    #[must_use]
    pub fn of(dialect: Dialect) -> Self {
        Self {
            dialect,
            chosen: dialect != Dialect::Auto,
            ..Self::default()
        }
    }

    /// Returns true if updates are linear.
    #[must_use]
    pub fn has_delta_updates(self) -> bool {
        self.delta.unwrap_or(self.dialect.has_delta_updates())
    }

    /// Returns true if this client gets frames of this method.
    #[must_use]
    pub fn sends_ui(self, method: UiMethod) -> bool {
        match method {
            UiMethod::SetTitle => self.ui.titles.unwrap_or(self.dialect.sends_titles()),
            UiMethod::Cancel => self.ui.cancels.unwrap_or(self.dialect.knows_ui_cancel()),
            _ => true,
        }
    }

    /// Undecided, and the client has said something but never an `id`: no client of today's pi.
    #[must_use]
    pub fn seems_old(self) -> bool {
        self.dialect == Dialect::Auto && !self.ids && (self.early || self.other)
    }

    /// Undecided, and everything so far could come from a client of the early dialect.
    #[must_use]
    pub fn seems_early(self) -> bool {
        self.seems_old() && !self.other
    }

    /// Returns the format after a line of the client, which may reveal its dialect.
    fn after(mut self, inbound: &Inbound) -> Self {
        let (name, id) = match inbound {
            Inbound::Request(request) => (request.name.as_str(), request.id.is_some()),
            // The id of a frame is that of the request it answers, so it says nothing about the client.
            Inbound::Frame(name, _) => (*name, false),
            Inbound::Rejected(response) => {
                let name = response.command.as_ref().and_then(serde_json::Value::as_str);
                (name.unwrap_or_default(), response.id.is_some())
            }
            Inbound::Eof => return self,
        };
        self.ids |= id;
        match name {
            "prompt" | "abort" | "compact" => self.early = true,
            // A line that is no command says nothing about the client.
            "" | "parse" => {}
            _ => self.other = true,
        }
        match self.dialect {
            Dialect::Auto => self.dialect = sniff(name, inbound).unwrap_or_default(),
            Dialect::Omp if name == "negotiate_protocol" => self.dialect = Dialect::OmpNow,
            // Commands that the first omp did not have.
            // By name there are only the first omp and today's, so it must be today's; a guess may as well have been xcsh.
            Dialect::Omp if IS_NEWER.contains(&name) => {
                self.dialect = if self.chosen {
                    Dialect::OmpNow
                } else {
                    Dialect::Xcsh
                };
            }
            _ => {}
        }
        // A handshake, not a guess.
        self.chosen |= name == "negotiate_protocol" && self.dialect == Dialect::OmpNow;
        self
    }

    fn pack(self) -> u32 {
        let dialect = Dialect::ALL.iter().position(|known| *known == self.dialect);
        let wish = |wish: Option<bool>| match wish {
            None => 0,
            Some(false) => 1,
            Some(true) => 2,
        };
        // Bits 0 to 7: the dialect; 8 to 11: facts about the client; then two bits for each wish.
        u32::try_from(dialect.unwrap_or_default()).unwrap_or_default()
            | u32::from(self.chosen) << 8
            | u32::from(self.ids) << 9
            | u32::from(self.early) << 10
            | u32::from(self.other) << 11
            | wish(self.delta) << 12
            | wish(self.ui.titles) << 14
            | wish(self.ui.cancels) << 16
            | u32::from(self.chunks) << 18
    }

    fn unpack(bits: u32) -> Self {
        let is = |bit: u32| bits >> bit & 1 == 1;
        let wish = |bit: u32| match bits >> bit & 3 {
            1 => Some(false),
            2 => Some(true),
            _ => None,
        };
        Self {
            dialect: Dialect::ALL
                .get((bits & 0xff) as usize)
                .copied()
                .unwrap_or_default(),
            chosen: is(8),
            chunks: is(18),
            ids: is(9),
            early: is(10),
            other: is(11),
            delta: wish(12),
            ui: WantedUi {
                titles: wish(14),
                cancels: wish(16),
            },
        }
    }
}

/// What xcsh and today's omp have and the first omp had not.
const IS_NEWER: [&str; 8] = [
    "steer",
    "follow_up",
    "abort_and_prompt",
    "set_interrupt_mode",
    "set_todos",
    "set_host_tools",
    "set_host_uri_schemes",
    "extension_ui_response",
];

/// What a single line gives away; nothing for what many dialects have (dialects.md 6, rule 5).
fn sniff(name: &str, inbound: &Inbound) -> Option<Dialect> {
    if let Inbound::Request(request) = inbound
        && let Command::Session(command) = &request.command
    {
        match command {
            SessionCommand::Prompt(params) if !params.attachments.is_empty() => return Some(Dialect::Hooks),
            SessionCommand::Branch(params) if params.entry_index.is_some() => return Some(Dialect::Hooks),
            SessionCommand::Branch(params) if params.entry_id.is_some() => return Some(Dialect::Omp),
            _ => {}
        }
    }
    match name {
        "negotiate_protocol" => Some(Dialect::OmpNow),
        "queue_message" | "set_queue_mode" | "reset" | "hook_ui_response" => Some(Dialect::Hooks),
        "set_todos" | "set_host_tools" | "set_interrupt_mode" | "abort_and_prompt" => Some(Dialect::Xcsh),
        "get_branch_messages" => Some(Dialect::Omp),
        "get_commands"
        | "fork"
        | "get_fork_messages"
        | "clone"
        | "clear_queue"
        | "get_entries"
        | "get_tree"
        | "get_available_thinking_levels" => Some(Dialect::Pi),
        _ => None,
    }
}

/// What both halves of a connection know of its dialect. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Spoken(Arc<AtomicU32>);

impl Spoken {
    /// A connection that was told its dialect; with [`Dialect::Auto`] it listens.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        Self(Arc::new(AtomicU32::new(Manner::of(dialect).pack())))
    }

    /// How lines are to be written from now on.
    #[must_use]
    pub fn manner(&self) -> Manner {
        Manner::unpack(self.0.load(Ordering::Acquire))
    }

    /// The client names its dialect: the next line is read and the next line is written in it. With [`Dialect::Auto`] the
    /// connection listens again, as if nothing had been said.
    pub fn choose(&self, dialect: Dialect) {
        self.update(|manner| Manner {
            // The client asked for these, so they stay. Only facts from its lines are forgotten.
            delta: manner.delta,
            ui: manner.ui,
            chunks: manner.chunks,
            ..Manner::of(dialect)
        });
    }

    /// The client asks for linear updates, or for cumulative ones, from the next answer on; `None` leaves it to the dialect.
    pub fn choose_delta(&self, delta: Option<bool>) {
        self.update(|manner| Manner { delta, ..manner });
    }

    /// The session has granted a version of the framing. A refused one leaves it as it is.
    pub(crate) fn choose_chunks(&self, chunks: bool) {
        self.update(|manner| Manner { chunks, ..manner });
    }

    /// Sets the user interface frames that the client wants, in any dialect.
    pub fn choose_ui(&self, ui: WantedUi) {
        self.update(|manner| Manner { ui, ..manner });
    }

    /// Listens to a line that came in.
    pub(crate) fn hear(&self, inbound: &Inbound) -> Manner {
        self.update(|manner| manner.after(inbound))
    }

    fn update(&self, change: impl Fn(Manner) -> Manner) -> Manner {
        // One word and no lock: both halves look at it for every line, and a change by one must not undo that of the other.
        let mut before = self.0.load(Ordering::Acquire);
        loop {
            let manner = change(Manner::unpack(before));
            let tried =
                self.0
                    .compare_exchange_weak(before, manner.pack(), Ordering::AcqRel, Ordering::Acquire);
            match tried {
                Ok(_) => return manner,
                Err(other) => before = other,
            }
        }
    }
}
