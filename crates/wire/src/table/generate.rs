//! What the rows of the command table become: the command enums, the table for schema and reference, the parser, and one
//! trait for each of the three parts of the program that carry out commands.
//!
//! A row says everything about a command once, so nothing can disagree with it: each trait has one method per row, and the
//! method's types are the row's. A command without a handler does not compile, nor does a handler with another command's reply.

/// Makes everything of the rows. The columns are: parameters, wire name, group, dialects, lane, handler, reply. After `->` the
/// handler returns the reply; after `=>` it gets a responder and may reply later.
macro_rules! commands {
    ($( $(#[doc = $doc:literal])+ $variant:ident($params:ty) = $name:literal, $group:ident, $dialects:expr, $lane:ident, $owner:ident::$method:ident $arrow:tt $reply:ty; )+) => {
        /// All commands, in the order of the reference page.
        pub static TABLE: &[CommandSpec] = &[
            $( CommandSpec {
                name: $name,
                doc: concat!($($doc),+),
                group: Group::$group,
                dialects: $dialects,
                lane: Lane::$lane,
                #[cfg(feature = "schema")]
                params: |generator| generator.subschema_for::<$params>(),
                #[cfg(feature = "schema")]
                reply: |generator| generator.subschema_for::<$reply>(),
                #[cfg(feature = "schema")]
                params_type: std::any::type_name::<$params>,
                #[cfg(feature = "schema")]
                reply_type: std::any::type_name::<$reply>,
                #[cfg(feature = "schema")]
                reply_is_readable: <Readable<$reply>>::IS,
            }, )+
        ];

        impl Command {
            /// Makes a command of its name and the whole line.
            ///
            /// # Errors
            /// When no row has the name, or the line's fields do not fit the row.
            pub fn parse(name: &str, line: &str) -> Result<Self, BadCommand> {
                match name {
                    $( $name => serde_json::from_str(line)
                        .map(|params| owned!($owner, $variant, params))
                        .map_err(|error| BadCommand::Params($name, error)), )+
                    _ => Err(BadCommand::Unknown(name.to_owned())),
                }
            }
        }

        split! { [] [] [] $( { $owner [$($doc)+] $variant($params) = $name, $lane, $method $arrow $reply } )+ }
    };
}

/// A command in the enum of who carries it out.
macro_rules! owned {
    (Session, $variant:ident, $params:ident) => {
        Command::Session(SessionCommand::$variant($params))
    };
    (Manager, $variant:ident, $params:ident) => {
        Command::Manager(ManagerCommand::$variant($params))
    };
    (Connection, $variant:ident, $params:ident) => {
        Command::Connection(ConnectionCommand::$variant($params))
    };
}

/// Sorts the rows by who carries the command out, one row per step.
macro_rules! split {
    ([$($session:tt)*] [$($manager:tt)*] [$($connection:tt)*] { Session $($row:tt)+ } $($rest:tt)*) => {
        split! { [$($session)* { $($row)+ }] [$($manager)*] [$($connection)*] $($rest)* }
    };
    ([$($session:tt)*] [$($manager:tt)*] [$($connection:tt)*] { Manager $($row:tt)+ } $($rest:tt)*) => {
        split! { [$($session)*] [$($manager)* { $($row)+ }] [$($connection)*] $($rest)* }
    };
    ([$($session:tt)*] [$($manager:tt)*] [$($connection:tt)*] { Connection $($row:tt)+ } $($rest:tt)*) => {
        split! { [$($session)*] [$($manager)*] [$($connection)* { $($row)+ }] $($rest)* }
    };
    ([$($session:tt)*] [$($manager:tt)*] [$($connection:tt)*]) => {
        command_enum! { "A command that a session carries out." SessionCommand $($session)* }
        command_enum! { "A command about the sessions of the process." ManagerCommand $($manager)* }
        command_enum! { "A command about the connection: its dialect, its options, its events." ConnectionCommand $($connection)* }
        handler! { "Carries out the commands of a session." SessionHandler SessionCommand $($session)* }
        handler! { "Carries out the commands about the sessions of the process." ManagerHandler ManagerCommand $($manager)* }
        direct_handler! { "Carries out the commands of a connection, each of them at once." ConnectionHandler ConnectionCommand $($connection)* }
    };
}

/// The enum of the commands that one part of the program carries out.
macro_rules! command_enum {
    ($about:literal $enum:ident $( { [$($doc:literal)+] $variant:ident($params:ty) = $name:literal, $lane:ident, $method:ident $arrow:tt $reply:ty } )+) => {
        #[doc = $about]
        #[derive(Debug, Clone, PartialEq)]
        pub enum $enum {
            $( $(#[doc = $doc])+ $variant($params), )+
        }

        impl $enum {
            /// The wire name.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $( Self::$variant(_) => $name, )+ }
            }

            /// How it is scheduled.
            #[must_use]
            pub fn lane(&self) -> Lane {
                match self { $( Self::$variant(_) => Lane::$lane, )+ }
            }
        }
    };
}

/// A trait with one method per command, and the dispatch to its methods.
macro_rules! handler {
    ($about:literal $trait:ident $enum:ident $( { [$($doc:literal)+] $variant:ident($params:ty) = $name:literal, $lane:ident, $method:ident $arrow:tt $reply:ty } )+) => {
        #[doc = $about]
        pub trait $trait: Responding {
            $( method! { [$($doc)+] $lane $arrow $method, $params, $reply } )+
        }

        impl $enum {
            /// Has the command carried out, and sends the reply unless the handler does so later.
            pub async fn dispatch<H: $trait>(self, handler: &mut H, origin: H::Origin) {
                match self {
                    $( Self::$variant(params) => call!($arrow handler, $method, params, $reply, origin), )+
                }
            }
        }
    };
}

/// The method of one row. There is none for a `Task` after `->`: its reply comes later by definition.
macro_rules! method {
    ([$($doc:literal)+] Task => $method:ident, $params:ty, $reply:ty) => {
        method! { => [$($doc)+] $method, $params, $reply }
    };
    ([$($doc:literal)+] Ordered => $method:ident, $params:ty, $reply:ty) => {
        method! { => [$($doc)+] $method, $params, $reply }
    };
    ([$($doc:literal)+] Control => $method:ident, $params:ty, $reply:ty) => {
        method! { => [$($doc)+] $method, $params, $reply }
    };
    ([$($doc:literal)+] Ordered -> $method:ident, $params:ty, $reply:ty) => {
        method! { -> [$($doc)+] $method, $params, $reply }
    };
    ([$($doc:literal)+] Control -> $method:ident, $params:ty, $reply:ty) => {
        method! { -> [$($doc)+] $method, $params, $reply }
    };
    (=> [$($doc:literal)+] $method:ident, $params:ty, $reply:ty) => {
        $(#[doc = $doc])+
        fn $method(&mut self, params: $params, responder: Self::Responder<$reply>) -> impl Future<Output = ()>;
    };
    (-> [$($doc:literal)+] $method:ident, $params:ty, $reply:ty) => {
        $(#[doc = $doc])+
        fn $method(&mut self, params: $params) -> impl Future<Output = Result<$reply, String>>;
    };
}

/// The call of one row's method.
macro_rules! call {
    (=> $handler:ident, $method:ident, $params:ident, $reply:ty, $origin:ident) => {{
        let responder = $handler.responder::<$reply>($origin);
        $handler.$method($params, responder).await
    }};
    (-> $handler:ident, $method:ident, $params:ident, $reply:ty, $origin:ident) => {{
        let outcome = $handler.$method($params).await;
        let responder = $handler.responder::<$reply>($origin);
        responder.respond(outcome).await
    }};
}

/// A trait whose methods answer where they stand, without waiting for anything, and the dispatch to them.
macro_rules! direct_handler {
    ($about:literal $trait:ident $enum:ident $( { [$($doc:literal)+] $variant:ident($params:ty) = $name:literal, Ordered, $method:ident -> $reply:ty } )+) => {
        #[doc = $about]
        ///
        /// ```
        /// use pinion_wire::command::{HelloParams, NoParams, ReplayParams};
        /// use pinion_wire::connection::{Protocol, Replayed, Welcome};
        /// use pinion_wire::omp::{EventFilter, EventFilterParams};
        /// use pinion_wire::table::ConnectionHandler;
        ///
        /// struct Refusing;
        /// impl ConnectionHandler for Refusing {
        ///     fn set_event_filter(&mut self, _: EventFilterParams) -> Result<EventFilter, String> { Err("no".into()) }
        ///     fn get_protocol(&mut self, _: NoParams) -> Result<Protocol, String> { Err("no".into()) }
        ///     fn hello(&mut self, _: Box<HelloParams>) -> Result<Welcome, String> { Err("no".into()) }
        ///     fn replay(&mut self, _: ReplayParams) -> Result<Replayed, String> { Err("no".into()) }
        /// }
        /// ```
        ///
        /// A command without a handler does not compile:
        ///
        /// ```compile_fail,E0046
        /// # use pinion_wire::command::{HelloParams, NoParams, ReplayParams};
        /// # use pinion_wire::connection::{Protocol, Replayed, Welcome};
        /// # use pinion_wire::omp::{EventFilter, EventFilterParams};
        /// # use pinion_wire::table::ConnectionHandler;
        /// # struct Refusing;
        /// impl ConnectionHandler for Refusing {
        ///     fn set_event_filter(&mut self, _: EventFilterParams) -> Result<EventFilter, String> { Err("no".into()) }
        ///     fn get_protocol(&mut self, _: NoParams) -> Result<Protocol, String> { Err("no".into()) }
        ///     fn hello(&mut self, _: Box<HelloParams>) -> Result<Welcome, String> { Err("no".into()) }
        /// }
        /// ```
        ///
        /// Nor does a handler with the reply of another command:
        ///
        /// ```compile_fail,E0053
        /// # use pinion_wire::command::{HelloParams, NoParams, ReplayParams};
        /// # use pinion_wire::connection::{Protocol, Replayed, Welcome};
        /// # use pinion_wire::omp::{EventFilter, EventFilterParams};
        /// # use pinion_wire::table::ConnectionHandler;
        /// # struct Refusing;
        /// impl ConnectionHandler for Refusing {
        ///     fn set_event_filter(&mut self, _: EventFilterParams) -> Result<EventFilter, String> { Err("no".into()) }
        ///     fn get_protocol(&mut self, _: NoParams) -> Result<Protocol, String> { Err("no".into()) }
        ///     fn hello(&mut self, _: Box<HelloParams>) -> Result<Protocol, String> { Err("no".into()) }
        ///     fn replay(&mut self, _: ReplayParams) -> Result<Replayed, String> { Err("no".into()) }
        /// }
        /// ```
        pub trait $trait {
            $( $(#[doc = $doc])+
            ///
            /// # Errors
            /// What the client gets as `error`.
            fn $method(&mut self, params: $params) -> Result<$reply, String>; )+
        }

        impl $enum {
            /// Has the command carried out.
            ///
            /// # Errors
            /// What the client gets as `error`.
            pub fn dispatch<H: $trait>(self, handler: &mut H) -> Result<Reply, String> {
                match self {
                    $( Self::$variant(params) => handler.$method(params).map(<Reply as From<$reply>>::from), )+
                }
            }
        }
    };
}
