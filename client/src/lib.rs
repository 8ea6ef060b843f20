//! Native client of the Tackboard broker: producer, consumer, admin.
