//! Policies: what holds where.
