//! Extensions of a session, with a child that is played here.
