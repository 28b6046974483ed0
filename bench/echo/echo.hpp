// echo: a server with a thread per connection against one with a hand-written event loop, under the same
// load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace echo {

constexpr std::size_t most_bytes = 4096;  ///< of a message

// Servers: accept @p connections at @p listener, send back what comes, until all have hung up. In a process
// of their own.
/// godwit: a thread per connection. Gives back an exit status.
int serve_with_threads(int listener, unsigned connections, unsigned workers);
/// A loop per OS thread; connections are dealt out in turn. @p edge: edge-triggered.
int serve_with_epoll(int listener, unsigned connections, unsigned loops, bool edge);
/// One loop, multishot receive into provided buffers. -1: not built, or the kernel has no such thing.
int serve_with_uring(int listener, unsigned connections);

struct load {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  unsigned connections = 10'000;
  unsigned active = 0;  ///< of them, with a message under way at a time; 0: all
  std::size_t bytes = 64;
  double warm_up = 0.5, seconds = 3;
  int server = 0;  ///< its process id, for its CPU time
};
struct outcome {
  std::uint64_t messages = 0;  ///< that came back in time
  double seconds = 0;
  double server_cpu_seconds = 0;
  std::uint64_t wrong = 0;  ///< bytes that did not come back as they were sent
};
/// One OS thread, all connections of it.
outcome generate(const load& l);

void check(bool good, const char* what);  ///< else: says errno and ends the process
void many_files();                        ///< raise the limit on open files as far as it goes

}  // namespace echo
