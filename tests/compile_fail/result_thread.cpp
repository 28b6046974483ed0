// expect: the result type of this thread cannot migrate
// An OS thread cannot be handed over.
#include <godwit/godwit.hpp>

#include <thread>

void use() {
  godwit::spawn([] { return std::thread{}; }).join().join();
}
