// Events from outside: what the layer's files share, and what the runtime calls. docs/protocols/events.md
#pragma once

#include "seams/park.hpp"

#include <csignal>
#include <cstdint>
#include <utility>

namespace godwit::events {

/// For set_event_source.
const detail::event_source& source() noexcept;
/// Before and after a run on substrate threads, by the thread that called run: what an earlier one left
/// behind is forgotten.
/// @p delay_us: testing, random delays inside the protocols.
void begin_run(std::uint32_t delay_us) noexcept;
void end_run() noexcept;

/// The descriptors that workers sleep in, made when a thread first waits for a descriptor: until then a futex
/// does.
void prepare() noexcept;
/// While it lives, prepare() of other threads makes none: until these have their high numbers, who closes all
/// numbers might close them. Not to be held over a suspension. One load once they are made, and where no run
/// is: outside, and in a forked child, closing stays as safe in handlers of signals as the system call.
class none_in_the_making {
 public:
  none_in_the_making() noexcept;
  ~none_in_the_making();
  none_in_the_making(const none_in_the_making&) = delete;

 private:
  bool held_;
  bool blocks_;  ///< all signals: the caller is no worker
  sigset_t before_;
};
/// Let the worker that waits for events come back.
void interrupt() noexcept;
/// A random pause of up to delay_us.
void delay() noexcept;

/// Of the epoll instance. After prepare().
int epoll() noexcept;
/// Is @p fd one of the two that workers sleep in? Whoever closes all that it does not know must leave these
/// alone. Two loads.
bool is_ours(int fd) noexcept;
/// Both, the lower first; -1: not there.
std::pair<int, int> ours() noexcept;
/// After a run; and in a forked child that is no worker: their numbers are free again, and none are made.
void close_ours() noexcept;

}  // namespace godwit::events
