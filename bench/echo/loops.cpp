// The servers that threads are compared with: what one writes by hand, without threads.
#include "echo.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <vector>
#if BENCH_HAS_URING
#include <liburing.h>
#endif

namespace echo {

namespace {

int accept_one(int listener) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  check(fd >= 0, "accept");
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

/// @p mine: connections that this loop gets in all.
void loop(int e, unsigned mine, bool edge) {
  epoll_event got[512];
  char buffer[most_bytes];
  while (mine != 0) {
    const int n = epoll_wait(e, got, 512, -1);
    for (int i = 0; i < n; ++i) {
      const int fd = got[i].data.fd;
      for (;;) {
        const ssize_t bytes = read(fd, buffer, sizeof buffer);
        if (bytes < 0 && errno == EAGAIN) break;
        // messages are short: they fit
        if (bytes <= 0 || write(fd, buffer, static_cast<std::size_t>(bytes)) != bytes) {
          close(fd);
          --mine;
          break;
        }
        // All there was; but an end that came with it makes no event of its own.
        if (!edge || (static_cast<std::size_t>(bytes) < sizeof buffer &&
                      (got[i].events & (EPOLLRDHUP | EPOLLHUP)) == 0))
          break;
      }
    }
  }
}

}  // namespace

int serve_with_epoll(int listener, unsigned connections, unsigned loops, bool edge) {
  std::vector<std::thread> threads;
  std::vector<int> epolls;
  for (unsigned i = 0; i < loops; ++i) epolls.push_back(epoll_create1(EPOLL_CLOEXEC));
  const auto add = [&](unsigned i) {
    epoll_event want{};
    want.events = EPOLLIN | (edge ? EPOLLET | EPOLLRDHUP : 0u);
    want.data.fd = accept_one(listener);
    epoll_ctl(epolls[i % loops], EPOLL_CTL_ADD, want.data.fd, &want);
  };
  for (unsigned i = 0; i < connections; ++i) add(i);
  for (unsigned i = 1; i < loops; ++i)
    threads.emplace_back([&, i] { loop(epolls[i], connections / loops + (i < connections % loops), edge); });
  loop(epolls[0], connections / loops + (0 < connections % loops), edge);
  for (auto& t : threads) t.join();
  return 0;
}

int serve_with_uring([[maybe_unused]] int listener, [[maybe_unused]] unsigned connections) {
#if BENCH_HAS_URING
  constexpr unsigned buffers = 4096, size = most_bytes;
  io_uring ring;
  io_uring_params p{};
  p.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE;
  p.cq_entries = 32768;
  if (io_uring_queue_init_params(4096, &ring, &p) != 0) return -1;
  // One group of buffers; a buffer goes back when its bytes are sent.
  std::vector<char> memory(std::size_t{buffers} * size);
  int error = 0;
#if defined(IO_URING_VERSION_MAJOR) && (IO_URING_VERSION_MAJOR > 2 || IO_URING_VERSION_MINOR >= 4)
  io_uring_buf_ring* group = io_uring_setup_buf_ring(&ring, buffers, 0, 0, &error);
#else
  auto* group = static_cast<io_uring_buf_ring*>(aligned_alloc(4096, sizeof(io_uring_buf) * buffers));
  io_uring_buf_reg registration{};
  registration.ring_addr = reinterpret_cast<std::uintptr_t>(group);
  registration.ring_entries = buffers;
  error = io_uring_register_buf_ring(&ring, &registration, 0);
  if (error == 0) io_uring_buf_ring_init(group);
#endif
  if (group == nullptr || error != 0) return -1;
  const auto give = [&](unsigned b, int at) {
    io_uring_buf_ring_add(group, memory.data() + std::size_t{b} * size, size, static_cast<unsigned short>(b),
                          io_uring_buf_ring_mask(buffers), at);
  };
  for (unsigned b = 0; b < buffers; ++b) give(b, static_cast<int>(b));
  io_uring_buf_ring_advance(group, buffers);
  const auto entry = [&] {
    io_uring_sqe* s = io_uring_get_sqe(&ring);
    if (s == nullptr) {
      io_uring_submit(&ring);
      s = io_uring_get_sqe(&ring);
    }
    return s;
  };
  const auto receive = [&](int fd) {
    io_uring_sqe* s = entry();
    io_uring_prep_recv_multishot(s, fd, nullptr, 0, 0);
    s->flags |= IOSQE_BUFFER_SELECT;
    s->buf_group = 0;
    io_uring_sqe_set_data64(s, static_cast<std::uint64_t>(fd) << 32);
  };
  for (unsigned i = 0; i < connections; ++i) receive(accept_one(listener));
  for (unsigned open = connections; open != 0;) {
    io_uring_submit_and_wait(&ring, 1);
    unsigned head, seen = 0, back = 0;
    io_uring_cqe* c;
    io_uring_for_each_cqe(&ring, head, c) {
      ++seen;
      const int fd = static_cast<int>(c->user_data >> 32);
      if ((c->user_data & 0xffffffff) != 0) {  // sent
        give(static_cast<unsigned>(c->user_data & 0xffffffff) - 1, static_cast<int>(back++));
      } else if (c->res > 0) {
        const unsigned b = c->flags >> IORING_CQE_BUFFER_SHIFT;
        io_uring_sqe* s = entry();
        io_uring_prep_send(s, fd, memory.data() + std::size_t{b} * size, static_cast<std::size_t>(c->res), 0);
        io_uring_sqe_set_data64(s, static_cast<std::uint64_t>(fd) << 32 | (b + 1));
        if ((c->flags & IORING_CQE_F_MORE) == 0) receive(fd);
      } else if (c->res == -ENOBUFS) {
        receive(fd);
      } else {
        close(fd);
        --open;
      }
    }
    io_uring_cq_advance(&ring, seen);
    io_uring_buf_ring_advance(group, static_cast<int>(back));
  }
  io_uring_queue_exit(&ring);
  return 0;
#else
  return -1;
#endif
}

}  // namespace echo
