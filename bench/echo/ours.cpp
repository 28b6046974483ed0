// The server as one writes it with threads.
#include "echo.hpp"

#include <godwit/godwit.hpp>
#include <godwit/io.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>

namespace echo {

namespace {

namespace gw = godwit;

void talk(int fd) {
  char buffer[most_bytes];
  for (ssize_t n; (n = gw::io::read(fd, buffer, sizeof buffer)) > 0;)
    if (gw::io::write(fd, buffer, static_cast<std::size_t>(n)) != n) break;
  gw::io::close(fd);
}

}  // namespace

int serve_with_threads(int listener, unsigned connections, unsigned workers) {
  gw::options o;
  o.substrate = gw::choice::substrate::threads;
  o.workers = workers;
  gw::run<void>(
      [listener, connections] {
        std::vector<gw::future<void>> threads;
        threads.reserve(connections);
        for (unsigned i = 0; i < connections; ++i) {
          const int fd = gw::io::accept(listener, nullptr, nullptr);
          const int one = 1;
          setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
          threads.push_back(gw::spawn([fd] { talk(fd); }));
        }
        for (auto& t : threads) t.join();
      },
      o);
  return 0;
}

}  // namespace echo
