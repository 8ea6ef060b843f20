//! Every byte layout of Tackboard that crosses a socket or a restart.
