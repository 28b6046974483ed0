// An echo server with a thread per connection: what a client sends comes back, until it hangs up.
//
//   example_echo_server [PORT]        port 7007 unless told otherwise; stop it with Ctrl-C
//   example_echo_server --self-test   one hundred clients of its own, then it ends
//
// Every connection is a thread that reads and writes as if it were alone; waiting threads cost no worker.
// docs/io.md.
#include <godwit/godwit.hpp>
#include <godwit/io.hpp>

#include <arpa/inet.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <netinet/in.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace gw = godwit;

void talk(int connection) {
  char buffer[1024];
  for (ssize_t n; (n = gw::io::read(connection, buffer, sizeof buffer)) > 0;)
    if (gw::io::write(connection, buffer, static_cast<std::size_t>(n)) != n) break;
  gw::io::close(connection);
}

int listen_at(std::uint16_t port, sockaddr_in& address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, 1024) != 0) {
    std::perror("echo_server: cannot listen");
    std::exit(1);
  }
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return fd;
}

bool client(const sockaddr_in& server, int number) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool good = gw::io::connect(fd, reinterpret_cast<const sockaddr*>(&server), sizeof server) == 0;
  for (int i = 0; i < 10 && good; ++i) {
    const int said = number * 10 + i;
    int heard = -1;
    good = gw::io::write(fd, &said, sizeof said) == sizeof said &&
           gw::io::recv(fd, &heard, sizeof heard, MSG_WAITALL) == sizeof heard && heard == said;
  }
  gw::io::close(fd);
  return good;
}

int main(int argc, char** argv) {
  gw::take_options(argc, argv);
  const bool self_test = argc > 1 && std::string(argv[1]) == "--self-test";
  sockaddr_in address;
  const int listener = listen_at(static_cast<std::uint16_t>(self_test  ? 0
                                                            : argc > 1 ? std::atoi(argv[1])
                                                                       : 7007),
                                 address);
  gw::options options;
  options.substrate = gw::choice::substrate::threads;
  return gw::run(
      argc, argv,
      [=] {
        constexpr int clients = 100;
        std::vector<gw::future<bool>> results;
        if (self_test)
          for (int i = 0; i < clients; ++i) results.push_back(gw::spawn([=] { return client(address, i); }));
        for (int served = 0; !self_test || served < clients; ++served) {
          const int connection = gw::io::accept(listener, nullptr, nullptr);
          if (connection < 0) break;
          static_cast<void>(gw::spawn([connection] { talk(connection); }));  // nobody waits for it
        }
        int right = 0;
        for (auto& r : results) right += r.join();
        if (self_test) std::printf("%d of %d clients got their bytes back\n", right, clients);
        return right == (self_test ? clients : 0) ? 0 : 1;
      },
      options);
}
