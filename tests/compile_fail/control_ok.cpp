// expect: compiles
// What the other files get wrong, done right.
#include <godwit/godwit.hpp>
#include <memory>
#include <string>
#include <vector>

struct person {
  std::string name;
  int age;
};
template <>
struct godwit::codec<person> {
  static void write(writer& w, const person& p) {
    w.put(p.name);
    w.put(p.age);
  }
  static person read(reader& r) {
    auto name = r.get<std::string>();
    return {std::move(name), r.get<int>()};
  }
};

struct own_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int shared_global = 0;
int function(int n) { return n + 1; }

long threads() {
  std::vector<int> v{1, 2, 3};
  long sum = godwit::spawn([](std::vector<int> w) { return w[0]; }, v).join();
  sum += static_cast<long>(
      godwit::spawn([p = std::make_unique<int>(1)] { return std::string("x"); }).join().size());
  sum += godwit::spawn([](person p) { return p; }, person{"Ada", 36}).join().age;
  sum += godwit::spawn(function, 1).join();
  sum += *godwit::spawn([] { return &shared_global; }).join();
  godwit::spawn([] {}).join();
  godwit::shared_future<int> s = godwit::spawn([] { return 1; });
  sum += godwit::spawn([s] { return s.get(); }).join();
  sum += godwit::spawn([](godwit::shared_future<int> t) { return t.get(); }, s).join();
  auto [a, b] = godwit::invoke([] { return 1; }, [] { return std::string("two"); });
  godwit::invoke([] {}, [] {});
  godwit::on_each_worker([] { shared_global = 1; });
  godwit::yield();
  return sum + a + static_cast<long>(b.size());
}

int main(int argc, char** argv) {
  godwit::take_options(argc, argv);
  godwit::register_exception<own_error>();
  const std::string text = godwit::run<std::string>(argc, argv, [] { return std::to_string(threads()); });
  const long number = godwit::run<long>([] { return threads(); });
  return godwit::run(argc, argv, [&] { return static_cast<int>(number) + static_cast<int>(text.size()); });
}
