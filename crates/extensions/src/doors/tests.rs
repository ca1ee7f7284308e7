//! Several played processes behind one set of doors.
