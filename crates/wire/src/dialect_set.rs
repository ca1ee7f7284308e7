//! Sets of dialects, for the tables of commands and events.

use crate::Dialect;

/// A set of dialects, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DialectSet(u16);

impl DialectSet {
    const fn of(dialect: Dialect) -> Self {
        Self(1 << dialect as u16)
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns true if the set contains the dialect.
    #[must_use]
    pub const fn has(self, dialect: Dialect) -> bool {
        self.0 & Self::of(dialect).0 != 0
    }
}

/// No dialect of the family: a command that only this agent has.
pub(crate) const OWN: DialectSet = DialectSet(0);
pub(crate) const E: DialectSet = DialectSet::of(Dialect::Early);
pub(crate) const W: DialectSet = DialectSet::of(Dialect::Web);
pub(crate) const H: DialectSet = DialectSet::of(Dialect::Hooks);
pub(crate) const O: DialectSet = DialectSet::of(Dialect::Omp);
pub(crate) const N: DialectSet = DialectSet::of(Dialect::OmpNow);
pub(crate) const X: DialectSet = DialectSet::of(Dialect::Xcsh);
const P: DialectSet = DialectSet::of(Dialect::Pi);
pub(crate) const D: DialectSet = DialectSet::of(Dialect::PiDelta);

/// Today's pi in both forms.
pub(crate) const PI: DialectSet = P.and(D);
/// xcsh and today's oh-my-pi, which share their frames.
pub(crate) const XN: DialectSet = X.and(N);
/// Dialects that had pi's first queue and branches.
pub(crate) const HO: DialectSet = H.and(O);
/// Every dialect except the earliest.
pub(crate) const ALL: DialectSet = W.and(HO).and(XN).and(PI);
/// Every dialect.
pub(crate) const EVERY: DialectSet = ALL.and(E);
/// Dialects that began, or were changed, after pi got steering.
pub(crate) const LATE: DialectSet = W.and(XN).and(PI);

/// A command or event of the family, and the dialects that have it.
pub type Belongs = (&'static str, DialectSet);
