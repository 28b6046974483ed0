// What valgrind_test.sh runs under memcheck: threads that wait for a mutex and for each other, more than a
// worker keeps stacks for.
#include <godwit/godwit.hpp>
#include <godwit/threads.hpp>

#include <cstdio>
#include <vector>

namespace gw = godwit;

int main(int argc, char** argv) {
  return gw::run(argc, argv, [] {
    gw::mutex m;
    long n = 0;
    std::vector<gw::thread> all;
    for (int i = 0; i < 100; ++i)
      all.emplace_back([&] {
        for (int k = 0; k < 20; ++k) {
          m.lock();
          const long seen = n;
          if (k % 4 == 0) gw::this_thread::yield();
          n = seen + 1;
          m.unlock();
        }
      });
    for (gw::thread& t : all) t.join();
    std::printf("%ld\n", n);
  });
}
