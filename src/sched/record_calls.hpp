// Calls of other hosts about this host's join records: they are read, and given back (call_no,
// far_calls.hpp). docs/protocols/join.md. Tests: tests/sched/far_calls_test.cpp, read_along_test.cpp.
#pragma once

#include "sched/far_calls.hpp"

namespace godwit::sched {

void read_record(call_site& site, transport::far::entry& e) noexcept;
/// join_records::release for a consumer on another host.
void release_record(call_site& site, transport::far::entry& e) noexcept;
void release_read_records(call_site& site, transport::far::entry& e) noexcept;

}  // namespace godwit::sched
